package setup

import (
	"embed"
	"strings"
)

//go:embed files
var embedded embed.FS

// What the daemons need of root, tried by leaving out one after the other. CAP_SYS_ADMIN finds maps by
// their numbers and holds CAP_BPF and CAP_PERFMON; CAP_NET_RAW wakes connections after a move;
// CAP_SYS_PTRACE sees in which network namespaces processes are; CAP_SETUID, CAP_SETGID and CAP_KILL run ready
// checks as users that are not root, and end them; CAP_SYS_NICE has probes sent in time.
const (
	hostCapabilities = "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_SETUID CAP_SETGID CAP_KILL"
	// AgentCapabilities are what it needs: its sockets have addresses of others, and ports below 1024 among them; its programs
	// and their links are BPF. Tests run it with no others.
	AgentCapabilities  = "CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_ADMIN"
	routerCapabilities = "CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN CAP_SYS_NICE"
	// GatewayCapabilities are what it needs of root; tests run it with no others.
	GatewayCapabilities = "CAP_NET_BIND_SERVICE CAP_SYS_RESOURCE"
)

// text is a file as this package brings it, for a binary at its place.
func text(name, binary string) []byte {
	raw, err := embedded.ReadFile("files/" + name)
	if err != nil {
		panic("setup: " + err.Error()) // the names are ours
	}
	return []byte(strings.NewReplacer("@BIN@", binary, "@HOSTCAPS@", hostCapabilities, "@ROUTERCAPS@", routerCapabilities, "@GATEWAYCAPS@", GatewayCapabilities, "@AGENTCAPS@", AgentCapabilities).Replace(string(raw)))
}

// hookDir is the one directory that container runtimes look for hooks in unless they are told another.
const hookDir = "/usr/share/containers/oci/hooks.d"

// A shared file serves every role.
type shared struct{ name, unpackaged, packaged string }

// Files are brought by the package, below /usr, or by an installation without one, below /etc.
func common(r Role) []shared {
	all := []shared{
		{"sysusers.conf", "/etc/sysusers.d/scaffold.conf", "/usr/lib/sysusers.d/scaffold.conf"},
		{"tmpfiles.conf", "/etc/tmpfiles.d/scaffold.conf", "/usr/lib/tmpfiles.d/scaffold.conf"},
		unit(r.Unit()),
	}
	if r == Router || r == Host || r == Agent {
		all = append(all, unit("run-scaffold-bpf.mount"))
	}
	if r == Host {
		all = append(all, shared{"oci-hook.json", hookDir + "/scaffold-guest.json", hookDir + "/scaffold.json"})
	}
	return all
}

func unit(name string) shared {
	return shared{name, "/etc/systemd/system/" + name, "/lib/systemd/system/" + name}
}

// Packaged returns what a package brings, by path.
func Packaged() map[string][]byte {
	all := map[string][]byte{}
	for _, r := range Roles {
		for _, f := range common(r) {
			all[f.packaged] = text(f.name, "/usr/bin/scaffold")
		}
	}
	return all
}
