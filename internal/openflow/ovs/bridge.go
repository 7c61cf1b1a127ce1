package ovs

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// A Config is all that an instance is told.
type Config struct {
	// Offload lets frames cross the switch as large as hosts' TCP hands them over, with checksums that
	// are not computed yet. Without it TCP of a host on a veth pair works only after
	// `ethtool -K DEVICE tx off` there. It is read when the daemon starts. Tunnels of Open vSwitch's own
	// lose such frames.
	Offload bool
	Bridges []Bridge
}

// A Bridge is one switch of an instance.
type Bridge struct {
	Name        string // of the bridge and of its device: 15 bytes
	Description string // dp_desc, what it calls itself to controllers; none if empty
	DatapathID  uint64 // one of Open vSwitch's choice if 0
	Protocols   string // OpenFlow13,OpenFlow15 if empty
	Learns      bool   // works by itself, as a learning switch; else it does nothing without a controller
	Controllers []string
	Connected   bool // it has all of Controllers, perhaps with others beside them: these rows stay as they are
	Ports       []Port
}

// A Port is one device of the namespace, or a tunnel.
type Port struct {
	Name    string
	Number  int               // OpenFlow port number, one of Open vSwitch's choice if 0
	Type    string            // "" for a device, else vxlan, geneve, gre, patch...
	Options map[string]string // of a tunnel: remote_ip, key...
}

// protocols are the versions that we speak.
const protocols = "OpenFlow13,OpenFlow15"

// maxBackoff is the shortest time, in ms, that may be asked for as the longest between two attempts to reach
// a controller. Open vSwitch 3.1 waits up to 8 s all the same.
const maxBackoff = 1000

// Configure writes the configuration, in one transaction, into the database; a daemon that runs follows
// in its own time. What the database had of the same bridges is changed, so that it may be repeated.
func (i Instance) Configure(c Config) (*exec.Cmd, error) {
	// Without this kind of QoS the daemon removes the token buckets of others from its ports.
	words := []string{"--no-wait", "init", "--", "set", "Open_vSwitch", ".", fmt.Sprintf("other_config:userspace-tso-enable=%v", c.Offload),
		"--", "--id=@untouched", "create", "QoS", "type=linux-noop"}
	for n, b := range c.Bridges {
		words = append(words, b.words(n)...)
	}
	return i.Vsctl(words...)
}

// words are the commands of one bridge, each after a double dash. The number keeps names of rows apart.
func (b Bridge) words(number int) []string {
	mode, versions := "secure", b.Protocols
	if b.Learns {
		mode = "standalone"
	}
	if versions == "" {
		versions = protocols
	}
	words := []string{"--", "--may-exist", "add-br", b.Name,
		"--", "set", "Bridge", b.Name, "datapath_type=netdev", "fail_mode=" + mode, "protocols=" + versions, "other-config:disable-in-band=true"}
	if b.Description != "" {
		words = append(words, "other-config:dp-desc="+b.Description)
	}
	if b.DatapathID != 0 {
		words = append(words, fmt.Sprintf("other-config:datapath-id=%016x", b.DatapathID))
	}
	if !b.Connected {
		words = append(words, b.connect(number)...)
	}
	for _, p := range b.Ports {
		words = append(words, p.words(b.Name)...)
	}
	return words
}

// connect are the words that give the bridge its controllers, and no others.
func (b Bridge) connect(number int) (words []string) {
	var rows []string
	for n, target := range b.Controllers {
		row := fmt.Sprintf("@controller%d_%d", number, n)
		rows = append(rows, row)
		words = append(words, "--", "--id="+row, "create", "Controller", fmt.Sprintf("target=%q", target),
			fmt.Sprintf("max_backoff=%d", maxBackoff), "connection_mode=out-of-band")
	}
	return append(words, "--", "set", "Bridge", b.Name, "controller=["+strings.Join(rows, ",")+"]")
}

func (p Port) words(bridge string) []string {
	words := []string{"--", "--may-exist", "add-port", bridge, p.Name}
	if p.Type == "" {
		words = append(words, "--", "set", "Port", p.Name, "qos=@untouched")
	}
	words = append(words, "--", "set", "Interface", p.Name, fmt.Sprintf("type=%q", p.Type))
	if p.Number != 0 {
		words = append(words, fmt.Sprintf("ofport_request=%d", p.Number))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Options)) {
		words = append(words, fmt.Sprintf("options:%s=%q", key, p.Options[key]))
	}
	return words
}
