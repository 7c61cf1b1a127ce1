package rules

import (
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/cli/command/commandtest"
)

// switches are all flags that are said or left out, by command: behind => stand the flags that would go unheard beside it,
// and are refused. Whoever adds one decides that here. Flags of daemons and of install stand in a configuration file, too,
// and are checked there.
const switches = `
apply --dry-run
apply --force
apply --prune
boost site set --on-path => switch
completion --no-descriptions
controller remove --force
demo --keep
diff --force
diff --prune
doctor --all => output=json
events --audit
events --follow
export --schema => api lab output
gateway drain --follow
host drain --dry-run => follow force
host drain --follow => dry-run
host drain --force => dry-run
host status --counters
join --check => install
join --install => check
join --restart
join --service
lab certificate --reset
lab certificate --strict
lab down --all
lab run --strict
lab serve --down
lab serve --public
lab serve --until-eof
lab topology --largest
lab topology --node-link
lab topology --summary
lab up --quiet
leave --force => offline
leave --offline => force
logout --offline
net key retire --force
net switch flow add --first
router forget --force
service create --boost
service drain --follow
service drain --force
service policy --boost
service rm --force
support dump --no-flows
uninstall --dry-run
uninstall --keep-config => purge
uninstall --purge => keep-config
upgrade --check
`

func TestEverySwitchSaysWhatGoesUnheardBesideIt(t *testing.T) {
	commandtest.Switches(t, cli.New(), switches, func(path string) bool {
		return slices.Contains([]string{"controld", "hostd", "routerd", "gateway"}, path) || strings.HasPrefix(path, "install ")
	})
}
