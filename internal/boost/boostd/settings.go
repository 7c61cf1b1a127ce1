package boostd

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/joining"
	"scaffold.dev/scaffold/internal/boost/options"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// Settings are what the file says.
type Settings struct {
	Name        string          // of this agent
	Door        netip.AddrPort  // where other agents reach it
	Paths       []agent.Address // where they do as well, each by another path
	Ports       []string        // interfaces by which the connections pass
	Key         string          // path of its private key; "": Credentials has it
	Controllers []string        // endpoints; none: the file says what the agent is to do
	Credentials string          // directory of what makes it a member of a network with keys
	KeyFor      time.Duration   // how old its key there becomes; 0: it keeps it
	Agents      []Other
	Lanes       []agent.Lane
	options.Options

	// BPFFS is where the kernel's side is pinned, "": /run/scaffold/bpf. It is no matter of the file.
	BPFFS string

	path string // of the file
	text []byte // what is in it
}

// An Other is another agent, with the key by which it is known.
type Other = joining.Peer

// DefaultCredentials is where `scaffold join` puts an agent's.
const DefaultCredentials = "/var/lib/scaffold/boostd"

// DefaultPort is an agent's, where the file does not say another one.
const DefaultPort = 23731

// mostPaths is how many addresses an agent has at most.
const mostPaths = agent.MostAddresses

// Read reads the file; all that is wrong with it is told at once, with lines.
func Read(path string) (Settings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read what the agent is to do: %w", err)
	}
	return Parse(path, text)
}

// Parse is Read of a file that is not there yet, or was read already.
func Parse(path string, text []byte) (s Settings, err error) {
	s = Settings{Options: options.Default(), Credentials: DefaultCredentials, KeyFor: member.DefaultKeyFor}
	r := reader{Reader: yamlfile.Reader{Path: path, Columns: true}, s: &s}
	if root := r.Tree(text, "name, door, ports, and controllers, or key, agents and lanes"); root != nil {
		r.file(root)
	}
	s.path, s.text = path, text
	return s, r.Err()
}

type reader struct {
	yamlfile.Reader
	s *Settings
}

func (r *reader) file(root *yamlfile.Node) {
	s, has := r.s, map[string]bool{}
	note := func(key string, read func(*yamlfile.Node)) func(*yamlfile.Node) {
		return func(n *yamlfile.Node) { has[key] = true; read(n) }
	}
	known := yamlfile.Fields{
		"name":        note("name", func(n *yamlfile.Node) { s.Name = r.name(n) }),
		"door":        note("door", func(n *yamlfile.Node) { s.Door = r.door(n) }),
		"paths":       func(n *yamlfile.Node) { r.List(n, "paths", r.path) },
		"ports":       note("ports", func(n *yamlfile.Node) { s.Ports = r.names(n, "ports") }),
		"key":         note("key", func(n *yamlfile.Node) { s.Key = r.Text(n, "key") }),
		"controllers": note("controllers", func(n *yamlfile.Node) { r.controllers(n) }),
		"credentials": note("credentials", func(n *yamlfile.Node) { s.Credentials = r.Text(n, "credentials") }),
		"key-for":     note("key-for", func(n *yamlfile.Node) { s.KeyFor = r.duration(n, "key-for") }),
		"agents":      note("agents", func(n *yamlfile.Node) { r.Each(n, "agents", r.other) }),
		"lanes":       note("lanes", func(n *yamlfile.Node) { r.List(n, "lanes", r.lane) }),
	}
	maps.Copy(known, options.Fields(&r.Reader, &s.Options))
	r.Object(root, "an agent's settings", known)
	for _, key := range []string{"name", "door", "ports"} {
		if !has[key] {
			r.At(root, "%s is missing", key)
		}
	}
	for _, key := range []string{"key", "agents", "lanes"} {
		switch {
		case has["controllers"] && has[key]:
			r.At(root, "%s: the controllers say what the agent is to do, and its credentials have its key: leave %s out, or controllers", key, key)
		case !has["controllers"] && !has[key]:
			r.At(root, "%s is missing", key)
		}
	}
	if has["credentials"] && !has["controllers"] {
		r.At(root, "credentials: without controllers nobody gives any: leave it out")
	}
	if has["key-for"] && !has["controllers"] {
		r.At(root, "key-for: without controllers nobody says to others that this agent has another key: leave it out")
	}
	r.fits(root)
}

// fits looks at what lines alone do not show.
func (r *reader) fits(root *yamlfile.Node) {
	s := r.s
	r.apart(root, "paths", s.Addresses())
	known := map[string]bool{s.Name: true}
	for _, o := range s.Agents {
		r.apart(root, "agents: "+o.Name, append([]netip.AddrPort{o.Door}, o.More...))
		if o.Name == s.Name {
			r.At(root, "agents: %q is this agent itself", o.Name)
		}
		known[o.Name] = true
	}
	for i, l := range s.Lanes {
		for _, name := range slices.Concat(l.Near, l.Far) {
			if !known[name] {
				r.At(root, "lanes: agent %q of the lane of %v to %v is not among agents", name, l.Client, l.Server)
			}
		}
		for _, o := range s.Lanes[:i] {
			if o.Client.Overlaps(l.Client) && o.Server.Overlaps(l.Server) && (o.Port == 0 || l.Port == 0 || o.Port == l.Port) {
				r.At(root, "lanes: %v to %v and %v to %v have connections in common: make prefixes or ports disjoint", o.Client, o.Server, l.Client, l.Server)
			}
		}
	}
}

func (r *reader) name(n *yamlfile.Node) string {
	s := r.Text(n, "name")
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", c) }) {
		r.At(n, "name: expected lower-case letters, digits and hyphens, found %s", yamlfile.KindOf(n))
	}
	return s
}

func (r *reader) names(n *yamlfile.Node, what string) (list []string) {
	r.List(n, what, func(n *yamlfile.Node) { list = append(list, r.Text(n, what)) })
	if len(list) == 0 {
		r.At(n, "%s: expected one at least", what)
	}
	return list
}

func (r *reader) controllers(n *yamlfile.Node) {
	r.s.Controllers = r.names(n, "controllers")
	for _, text := range r.s.Controllers {
		if _, err := api.ParseEndpoint(text); err != nil {
			r.At(n, "controllers: %v", err)
		}
	}
}

func (r *reader) duration(n *yamlfile.Node, what string) time.Duration {
	d, err := time.ParseDuration(r.Text(n, what))
	if err != nil || d < 0 {
		r.At(n, "%s: expected a duration, as in 720h, or 0 for good; found %s", what, yamlfile.KindOf(n))
	}
	return d
}

// ParseDoor takes an address of an agent with a port, or without for the default one.
func ParseDoor(text string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		alone, err := netip.ParseAddr(text)
		if err != nil {
			return a, errNoDoor
		}
		a = netip.AddrPortFrom(alone, DefaultPort)
	}
	if !a.Addr().IsGlobalUnicast() && !a.Addr().IsLoopback() || a.Port() == 0 {
		return a, errNoDoor
	}
	return a, nil
}

var errNoDoor = fmt.Errorf("expected an address of one machine, with or without a port, as in 192.0.2.1 or [2001:db8::1]:%d", DefaultPort)

// ApartDoors looks that addresses of one agent are different ones, for a path is known by its two, and not too many.
func ApartDoors(all []netip.AddrPort) error {
	for i, a := range all {
		if slices.ContainsFunc(all[:i], func(o netip.AddrPort) bool { return o.Addr().Unmap() == a.Addr().Unmap() }) {
			return fmt.Errorf("%v is named twice: each path has an address of its own", a.Addr())
		}
	}
	if len(all) > mostPaths {
		return fmt.Errorf("expected at most %d addresses, with the door", mostPaths)
	}
	return nil
}

func (r *reader) door(n *yamlfile.Node) netip.AddrPort {
	a, err := ParseDoor(r.Text(n, "door"))
	if err != nil {
		r.At(n, "door: %v; found %s", err, yamlfile.KindOf(n))
	}
	return a
}

// path reads a further address of this agent: alone, or with what the path takes.
func (r *reader) path(n *yamlfile.Node) {
	if yamlfile.IsValue(n) {
		r.s.Paths = append(r.s.Paths, agent.Address{At: r.door(n)})
		return
	}
	var a agent.Address
	r.Object(n, "a path", yamlfile.Fields{
		"door":  func(n *yamlfile.Node) { a.At = r.door(n) },
		"limit": func(n *yamlfile.Node) { a.Limit = options.Limit(&r.Reader, n) },
	})
	if !a.At.IsValid() {
		r.At(n, "paths: each needs a door: the address at which other agents reach this one by it")
		return
	}
	r.s.Paths = append(r.s.Paths, a)
}

func (r *reader) apart(n *yamlfile.Node, what string, all []netip.AddrPort) {
	if err := ApartDoors(all); err != nil {
		r.At(n, "%s: %v", what, err)
	}
}

// Addresses are this agent's, its door first.
func (s *Settings) Addresses() (list []netip.AddrPort) {
	list = append(list, s.Door)
	for _, p := range s.Paths {
		list = append(list, p.At)
	}
	return list
}

func (r *reader) other(key, value *yamlfile.Node) {
	o := Other{Peer: agent.Peer{Name: r.name(key)}}
	r.Object(value, "agent "+key.Value, yamlfile.Fields{
		"door": func(n *yamlfile.Node) { o.Door = r.door(n) },
		"paths": func(n *yamlfile.Node) {
			r.List(n, "paths", func(n *yamlfile.Node) { o.More = append(o.More, r.door(n)) })
		},
		"key": func(n *yamlfile.Node) {
			b, err := base64.StdEncoding.DecodeString(r.Text(n, "key"))
			if err != nil || len(b) != ed25519.PublicKeySize {
				r.At(n, "key: expected the other agent's public key, as `scaffold boostd key` prints it there; found %s", yamlfile.KindOf(n))
			}
			o.Key = b
		},
	})
	if !o.Door.IsValid() || o.Key == nil {
		r.At(value, "agent %s: door and key are both needed", key.Value)
	}
	r.s.Agents = append(r.s.Agents, o)
}

func (r *reader) lane(n *yamlfile.Node) {
	l := agent.Lane{}
	r.Object(n, "a lane", yamlfile.Fields{
		"client": func(n *yamlfile.Node) { l.Client = r.prefix(n, "client") },
		"server": func(n *yamlfile.Node) { l.Server = r.prefix(n, "server") },
		"port":   func(n *yamlfile.Node) { l.Port = uint16(r.Integer(n, "port", 1, 65535)) },
		"near":   func(n *yamlfile.Node) { l.Near = r.names(n, "near") },
		"far":    func(n *yamlfile.Node) { l.Far = r.names(n, "far") },
		"accept": func(n *yamlfile.Node) { l.AtOnce = r.OneOf(n, "accept", lane.Accepts...) == lane.AtOnce },
	})
	l.Number = numberOf(&l)
	if err := l.Check(); err != nil {
		_, what, _ := strings.Cut(err.Error(), ": ")
		r.At(n, "lane: %s", what)
		return
	}
	r.s.Lanes = append(r.s.Lanes, l)
}

func (r *reader) prefix(n *yamlfile.Node, what string) netip.Prefix {
	bad := len(r.Errs)
	p, err := lane.ParsePrefix(r.Text(n, what))
	if err != nil && len(r.Errs) == bad {
		r.At(n, "%s: %v", what, err)
	}
	return p
}

// numberOf is a lane's number: the same at all agents whose files have it, whatever else these have.
func numberOf(l *agent.Lane) uint64 {
	h := fnv.New64a()
	for _, part := range []string{l.Client.String(), l.Server.String(), strconv.Itoa(int(l.Port)), strings.Join(l.Near, ","), strings.Join(l.Far, ",")} {
		h.Write([]byte(part + "\x00"))
	}
	return max(h.Sum64(), 1)
}
