#!/bin/sh
# Stands for a launcher while `asap resolve` runs a script: writes down how it was called and what it was given, and
# starts nothing. What only computes or prints is done by the program itself.
name=$(basename "$0")

real() {
  IFS=:
  for folder in $PATH; do
    [ "$folder" != "$CALLS_CAUGHT_FOR_ASAP/bin" ] && [ -x "$folder/$name" ] && break
  done
  unset IFS
  "$folder/$name" "$@"
}

documents() {
  [ -d "$1" ] && set -- "$1"/*.yaml "$1"/*.yml "$1"/*.json
  for file in "$@"; do [ -d "$file" ] || cat "$file"; echo; echo ---; done
}

case "$name $1" in
  python*\ -c | python*\ -V | python*\ --version | python*\ - | helm\ template | kubectl\ kustomize | gcloud\ config)
    real "$@"; exit ;;
  conda\ run | uv\ run | poetry\ run) ;;
  conda\ * | uv\ * | poetry\ *) real "$@"; exit ;;
esac
caught=$(mktemp "$CALLS_CAUGHT_FOR_ASAP/call.XXXXXX") || exit 1
{ printf '%s\0' "$name" "$@"; } > "$caught.arguments"
env -0 > "$caught.environment"
rm -f "$caught"
printf '%s\n' "$caught" >> "$CALLS_CAUGHT_FOR_ASAP/order"

for last in "$@"; do
  case "$name $before" in
    kubectl\ -f | kubectl\ --filename) documents "$last" ;;
    kubectl\ -k | kubectl\ --kustomize) real kustomize "$last" ;;
  esac
  case "$name $last" in
    kubectl\ --filename=*) documents "${last#*=}" ;;
    kubectl\ --kustomize=*) real kustomize "${last#*=}" ;;
  esac
  before=$last
done > "$caught.given" 2>/dev/null

said="$*"
case "$name $1" in
  helm\ install | helm\ upgrade)
    shift
    for word in "$@"; do
      shift
      case "$word" in -i | --install | --reuse-values | --reset-values) ;; *) set -- "$@" "$word" ;; esac
    done
    real template "$@" > "$caught.given" 2>/dev/null ;;
  ssh*) cat > "$caught.given" ;; # a shell of another machine: read, and not run
  docker* | podman* | apptainer* | singularity*) case "$last" in bash | sh | -s | -) cat > "$caught.given" ;; esac ;;
  srun* | mpirun* | mpiexec* | sbatch* | qsub* | sudo*)
    for word in "$@"; do
      shift
      [ -f "$word" ] || continue
      case "$name $word" in
        sbatch* | *.sh) exec bash "$word" "$@" ;;
        */*) head -n 1 "$word" | grep -q '^#!.*[/ ]\(ba\|da\|z\|k\)*sh' && exec bash "$word" "$@" ;;
      esac
    done
    case "$name $said" in sbatch*--wrap*) ;; sbatch* | qsub*) exec bash ;; esac ;;
esac
exit 0
