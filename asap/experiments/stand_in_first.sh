# Sourced by bash before each script that `asap resolve` runs: the stand-ins stay first on the path, whatever
# environment is activated.
[ -z "$OWN_BASH_ENV" ] || . "$OWN_BASH_ENV"
set -o functrace
trap 'case $PATH in "$CALLS_CAUGHT_FOR_ASAP/bin":*) ;; *) PATH=$CALLS_CAUGHT_FOR_ASAP/bin:$PATH ;; esac' DEBUG
