package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/remote"
)

// refused are command lines that are mistakes: each is told before anybody is asked. After => stands what is said.
const refused = `
# An empty list is no list, an empty name no name: $UNSET must not open a service, or widen what is looked at.
service access web --allow ''            => --allow is empty
service access web --server ''           => any lets every host serve
service access web --allow c1,           => --allow: one of its entries is empty
service access web --allow any,c1        => any stands alone
service access web --server any,s1       => any stands alone
service create web --allow ''            => --allow is empty
service create web --server ''           => --server is empty
service create web --key ''              => --key is empty
service create web --ready ''            => none
service create ''                        => NAME is empty
service rm ''                            => NAME is empty
service policy web --ready ''            => --ready is empty
service drain web ''                     => is empty
service drain web --instance ''          => --instance is empty
service weight web ''                    => is empty
service ls --api ''                      => --api is empty
service ls --lab ''                      => --lab is empty
export ''                                => is empty
flow ls --service ''                     => --service is empty
flow ls --host ''                        => --host is empty
flow move --service '' --to eth1         => --service is empty
flow move --from '' --service web --to e => --from is empty
flow move --service web --to ''          => --to is empty
token create --role host --name ''       => --name is empty
token create --role host --address ''    => --address is empty
token create --role ''                   => --role is empty
token create --role boss                 => --role "boss": want host, router, admin or agent
host forget ''                           => NAME is empty
host drain ''                            => HOST is empty
guest add --netns ''                     => --netns is empty
apply -f ''                              => --file
apply -f x --owner ''                    => --owner is empty
controld --etcd ''                       => --etcd is empty
controld --join '' --peer http://a:1     => --join is empty
controld --cluster ''                    => --cluster is empty
controld --trust ''                      => --trust is empty
hostd --name h --controller ''           => --controller is empty
hostd --name h --uplink ''               => --uplink is empty
state restore x --etcd ''                => --etcd is empty
support dump --lab ''                    => --lab is empty
uninstall ''                             => is empty
lab down ''                              => NAME is empty

# Two values for one thing.
service weight web web1=1 web1=2         => web1 stands twice
service weight web web1=1 web1=1         => web1 stands twice
service drain web s1 --instance s2       => one host at a time
service create web --weight 0            => want a whole number from 1 to 65535
service policy web --weight 0            => want a whole number from 1 to 65535
service policy web --weight 65536        => want a whole number from 1 to 65535
service policy web --dscp 64             => want a whole number from 0 to 63
boost allow f --client 192.0.2.1/24 --server 198.51.100.7 => is 192.0.2.0/24 meant?
boost allow f --client 192.0.2.0/24 --server x => expected an address or a prefix
boost allow f --client 192.0.2.0/24,203.0.113.0/24 --server 198.51.100.7 => expected an address or a prefix
boost site set east --prefix 192.0.2.0/24,y => "y": expected an address or a prefix
boost allow f --client 192.0.2.0/24 --server 198.51.100.7 --port 65536 => want a whole number from 1 to 65535
boost allow f --client 192.0.2.0/24 --server 198.51.100.7 --accept late => want answered or at-once

# Flags of which one would be ignored.
service ls --api unix:/x --lab one       => --api and --lab
flow ls --api unix:/x --host c1          => --api and --host
explain x --api unix:/x --host c1        => --api and --host
capture web --api unix:/x --host c1      => --api and --host
guest ls --api unix:/x --host c1         => --api and --host
host status --api unix:/x --host c1      => --api and --host
service create web --sid 00000001-00c0ffee00c0ffee --ss 2 => --sid and --ss
service keygen k -o json                 => has no -o json
service keygen k --api unix:/x           => asks nobody
service delegate web --key k --host s1 -o json => has no -o json
host drain s1 --dry-run --follow         => --dry-run and --follow
host drain s1 --dry-run --force          => --dry-run and --force
flow move 9f3c1b2a44d0e871 --service web --to e => FLOW
flow move 9f3c1b2a44d0e871 --from e --to f => FLOW
flow move --from eth0 --to eth0          => the same
state show FILE --api unix:/x            => of a file
state show FILE --lab x                  => of a file
state backup - -o json                   => has no -o json
state restore FILE --api unix:/x         => asks nobody
state restore FILE --lab x               => asks nobody
state restore FILE -o json               => has no -o json
state restore FILE --etcd a:1 --data d   => --data and --etcd
export --schema --api unix:/x            => --schema
export --schema --lab x                  => --schema
export --schema -o json                  => --schema
guest add --pid 1 --netns /x             => --netns and --pid
run --service web --drain none --drain-limit 1s -- true => --drain none
uninstall --purge --keep-config          => --keep-config and --purge
capture web -o json                      => has no -o json
net switch flow add s1 any drop --first --priority 5 --api unix:/x --lab one => --api and --lab
lab topology gabriel --read f            => which network
lab topology gabriel --size 3 --node-link --summary => which one
lab topology gabriel --size 3 --node-link -o json => which one
lab status one --lab two                 => --lab
lab down one --all                       => --all
lab serve --token-file t                 => --token-file
lab serve --public                       => --public
leave --offline --force                  => --offline and --force
rotate --socket /x --state /y            => --socket and --state
doctor --all -o json                     => --all and --output json
join --token scaffold1-x --check --install => --check and --install
service rm web db                        => takes one NAME, got 2
service weight web                       => give at least one HOST=WEIGHT
host show                                => NAME is missing
service ls web                           => takes no arguments, got "web"
apply                                    => --file (-f) is missing
service delegate web                     => --host and --key are missing
net path a                               => TO is missing
net path a b c                           => takes FROM and TO, got 3

# What does not exist.
completion foo                           => bash, fish, powershell or zsh
completion                               => bash, fish, powershell or zsh
help nosuch                              => no such command
help service nosuch                      => no such command
frobnicate                               => unknown command
service frobnicate                       => there is no such command
service ls --frob                        => unknown flag
events --last x                          => want a whole number
events --last -1                         => want a whole number
events --last 4294967296                 => want a whole number
support dump --since 5                   => want a time
export --schema=maybe                    => want true or false
lab replay f into a:b --speed x          => want a number
`

// harmless are groups of commands that run here; the others would start daemons or take labs down.
var harmless = []string{"service", "flow", "host", "state", "export", "explain", "guest", "apply", "diff", "token", "net", "capture", "topology", "completion", "help"}

func TestAMistakeOnTheCommandLineIsToldAndNobodyIsAsked(t *testing.T) {
	t.Setenv(remote.APIVariable, "unix:"+filepath.Join(t.TempDir(), "nobody")) // who is asked all the same ends with another code
	t.Chdir(t.TempDir())
	if err := os.WriteFile("FILE", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commandtest.Refused(t, refused, func() *cobra.Command { return New() }, harmless...)
}
