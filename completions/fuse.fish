# Completion of fuse for fish.
function __fuse_complete
    set -l words (commandline -opc)
    fuse complete-words -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c fuse -a '(__fuse_complete)'
