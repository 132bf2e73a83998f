# Completion of fuse for bash.
_fuse() {
  local word line
  word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS=$'\t' read -r line _; do
    [[ $line == "$word"* ]] && COMPREPLY+=("$line")
  done < <(fuse complete-words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _fuse fuse
