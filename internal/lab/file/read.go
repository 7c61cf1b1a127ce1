package file

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/sid"
)

// maxFile bounds what a lab file may be; the largest sensible ones are a hundredth of it.
const maxFile = 1 << 20

// Load reads and checks a lab file.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("lab file: %w", err)
	}
	return Parse(path, text)
}

// Parse reads and checks the text of a lab file; path names it in errors, which are of type [Errors], and files that
// it names are looked for beside it.
func Parse(path string, text []byte) (*File, error) { return ParseWith(path, text, nil) }

// ParseWith takes the text of files that the lab file names from where it is kept, and from the disk what is not there.
func ParseWith(path string, text []byte, files map[string][]byte) (*File, error) {
	r := newReader(path, files)
	f := &File{Path: path, Source: text, Network: Network{Line: 1, Domain: "svc", Space: sid.DefaultSpace(), Plane: usualPlane(), Routing: defaultRouting()}}
	if len(text) > maxFile {
		r.errorf(1, "the file has %d bytes; expected at most %d", len(text), maxFile)
		return nil, r.err()
	}
	if root := r.tree(text); root != nil {
		r.file(f, root)
		f.UsePlane(f.Network.Plane)
		r.expandChaos(f)
		f.order()
		if (len(f.Nodes) > 0 || len(r.Errs) == 0) && !r.partial {
			(&checker{f, r}).check() // without nodes all else would be an echo of one mistake
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return f, nil
}

func (r *reader) file(f *File, root *yaml.Node) {
	f.Name = nameFromPath(f.Path)
	var topology *yaml.Node
	r.object(root, "a lab", fields{
		"name":     func(n *yaml.Node) { f.Name = r.labName(n) },
		"network":  func(n *yaml.Node) { r.network(&f.Network, n) },
		"nodes":    func(n *yaml.Node) { r.nodes(f, n) },
		"links":    func(n *yaml.Node) { r.links(f, n) },
		"topology": func(n *yaml.Node) { topology = n },
		"services": func(n *yaml.Node) { r.services(f, n) },
		"boost":    func(n *yaml.Node) { r.boost(f, n) },
		"timeline": func(n *yaml.Node) { r.timeline(f, n) },
		"title":    func(n *yaml.Node) { f.Title = r.text(n, "title") },
		"series":   func(n *yaml.Node) { r.series(f, n) },
		"measure":  func(n *yaml.Node) { r.measures(f, n) },
	})
	if topology != nil { // last: its nodes are numbered behind the file's own, wherever the key stands
		r.topology(f, topology)
	}
}

// A lab's name is part of names of namespaces, before a dash, so it has none itself. It is short
// because paths of Unix sockets are.
var labName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_]{0,18}[a-z0-9])?$`)

// A node's name is part of names of interfaces, namespaces and files.
var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// A program's name is a directory and a cgroup.
var programName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,31}$`)

func nameFromPath(path string) string {
	base := filepath.Base(path)
	name := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
	return regexp.MustCompile(`[^a-z0-9_]`).ReplaceAllString(name, "_")
}

// CheckName says what a lab may be called.
func CheckName(name string) error {
	if !labName.MatchString(name) {
		return fmt.Errorf("lab name %q: expected 1 to 20 of a-z, 0-9 and inner _", name)
	}
	return nil
}

func (r *values) labName(n *yaml.Node) string {
	name := r.text(n, "name")
	if err := CheckName(name); err != nil {
		r.errorf(n.Line, "%v", err)
	}
	return name
}

func (r *reader) network(net *Network, n *yaml.Node) {
	net.Line = n.Line
	r.object(n, "network", fields{
		"domain":     func(n *yaml.Node) { net.Domain = r.domain(n) },
		"trust":      func(n *yaml.Node) { net.Trust = r.oneOf(n, "trust", "open", "keys") },
		"plane":      func(n *yaml.Node) { net.Plane = r.oneOf(n, "plane", planes...) },
		"journal":    func(n *yaml.Node) { net.Journal = r.boolean(n, "journal") },
		"services":   func(n *yaml.Node) { net.Space.Services = r.prefix(n, "services") },
		"as":         func(n *yaml.Node) { net.Space.AS = r.prefix(n, "as") },
		"identities": func(n *yaml.Node) { net.Space.Identities = r.prefix(n, "identities") },

		"routes":      func(n *yaml.Node) { net.Routes = r.oneOf(n, "routes", ComputedRoutes, StaticRoutes) },
		"ecmp":        func(n *yaml.Node) { net.ECMP = r.boolean(n, "ecmp") },
		"convergence": func(n *yaml.Node) { net.Convergence = r.duration(n, "convergence") },
		"fib":         func(n *yaml.Node) { net.FIB = r.oneOf(n, "fib", ClassFIB, PrefixFIB) },
		"engine":      func(n *yaml.Node) { net.Engine = r.text(n, "engine") },
	})
	s, broken := net.Space, netip.Prefix{}
	if s.Services == broken || s.AS == broken || s.Identities == broken {
		return // said already
	}
	if err := net.Space.Validate(); err != nil {
		r.errorf(n.Line, "network: %v", err)
	}
}

var domainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func (r *values) domain(n *yaml.Node) string {
	name := r.text(n, "domain")
	if !domainName.MatchString(name) {
		r.errorf(n.Line, "domain: expected a DNS name such as svc or svc.example, found %s", kindOf(n))
	}
	return name
}

func (r *values) prefix(n *yaml.Node, what string) netip.Prefix {
	p, err := netip.ParsePrefix(r.text(n, what))
	if err != nil {
		r.errorf(n.Line, "%s: expected an IPv6 prefix such as fd5c::/32, found %s", what, kindOf(n))
	}
	return p
}
