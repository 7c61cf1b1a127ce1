package router

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

const abi = 2 // ROUTER_ABI

// Config says what network the router serves and where its maps are pinned.
type Config struct {
	Space sid.Space // zero: that of the pinned rules, or none until SetSpace
	Pin   string    // directory on a bpffs, made if need be; "" pins nothing
	Plain bool      // a network router: resolves nothing, and only sees to what hosts have left
	NoTCX bool      // attach by clsact filters, as kernels before 6.6 need it
	Nodes uint32    // room for so many nodes of tables; 0: 524,288
}

// A Resolver is the loaded program with its tables. It is not safe for concurrent use, except for
// Counters.
type Resolver struct {
	cfg     Config
	objs    resolveObjects
	links   map[int]link.Link // tcx, by ifindex
	filters map[int]bool      // clsact, by ifindex
	adopted bool
	config  resolveRouterConfig

	// What the maps hold, so that a rule that changes nothing costs no system call.
	tables    map[sid.Triple][]resolve.Node
	services  map[sid.ServiceID]Service
	redirects map[sid.Locator]sid.Locator
	gone      map[sid.Locator]bool
	silent    map[sid.Locator]bool
	sources   map[Source]bool
	filtering bool
	instances int
	nodes     int
	writes    uint64
}

// Open loads the program. With maps pinned at cfg.Pin that an earlier process left, it takes them over
// with all they hold, and puts the new program in the place of the old on the ports where that runs.
// Pins in a form that it cannot read are thrown away, and so are those that a router left whose
// interfaces are all gone. It must run in the router's network namespace.
func Open(cfg Config) (*Resolver, error) {
	r := &Resolver{cfg: cfg, links: map[int]link.Link{}, filters: map[int]bool{}}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("service router: %w", err)
	}
	err := r.adopt()
	if err == nil && cfg.Space != (sid.Space{}) {
		err = r.SetSpace(cfg.Space)
	}
	if err == nil && r.config.As != 0 && r.config.Resolves != r.resolves() {
		r.config.Resolves = r.resolves()
		err = r.putConfig()
	}
	if err != nil {
		r.Close(true)
		return nil, fmt.Errorf("service router: adopt what is pinned at %s: %w", cfg.Pin, err)
	}
	return r, nil
}

// load loads the program with its maps, pinned ones where they fit.
func (r *Resolver) load() error {
	if r.cfg.Pin != "" && abandoned(r.cfg.Pin) {
		if err := os.RemoveAll(r.cfg.Pin); err != nil {
			return err
		}
	}
	err := r.loadOnce()
	if errors.Is(err, ebpf.ErrMapIncompatible) || err == nil && r.config.Abi != 0 && r.config.Abi != abi {
		r.objs.Close()
		if err := os.RemoveAll(r.cfg.Pin); err != nil {
			return err
		}
		err = r.loadOnce()
	}
	if err != nil {
		return err
	}
	r.adopted = r.config.Abi != 0
	r.config.Abi = abi
	return r.putConfig()
}

func (r *Resolver) loadOnce() error {
	spec, err := loadResolve()
	if err != nil {
		return err
	}
	if r.cfg.Nodes != 0 {
		spec.Maps["tables"].MaxEntries = r.cfg.Nodes
	}
	opts := ebpf.CollectionOptions{}
	var fresh []string
	if r.cfg.Pin != "" {
		if err := os.MkdirAll(r.cfg.Pin, 0o700); err != nil {
			return fmt.Errorf("%w (is a bpffs mounted there? mount -t bpf bpf DIR)", err)
		}
		opts.Maps.PinPath = r.cfg.Pin
		fresh = r.reuse(spec.Maps)
	}
	all, err := ebpf.NewCollectionWithOptions(spec, opts)
	if err != nil {
		return err
	}
	defer all.Close()
	for _, name := range fresh { // not before the program has them: see unused
		if err := all.Maps[name].Pin(r.pin(name)); err != nil {
			return err
		}
	}
	if err := all.Assign(&r.objs); err != nil {
		return err
	}
	return r.objs.Config.Lookup(uint32(0), &r.config)
}

// reuse asks for the maps that are pinned, of the capacity that they have, which another version may have given them,
// and names those that are to be pinned.
func (r *Resolver) reuse(specs map[string]*ebpf.MapSpec) (fresh []string) {
	for name, spec := range specs {
		if name[0] == '.' {
			continue
		}
		m, err := ebpf.LoadPinnedMap(r.pin(name), nil)
		if errors.Is(err, os.ErrNotExist) {
			fresh = append(fresh, name)
			continue
		}
		spec.Pinning = ebpf.PinByName
		if err == nil {
			spec.MaxEntries = m.MaxEntries()
			m.Close()
		}
	}
	return fresh
}

// SetSpace says which prefixes the network has. Rules of another network are forgotten.
func (r *Resolver) SetSpace(s sid.Space) error {
	as, services := uint64(s.Locator(0)), servicesWord(s.Services)
	if r.config.As == as && r.config.Services == services {
		return nil
	}
	r.config = resolveRouterConfig{As: as, Services: services, Abi: abi, Resolves: r.resolves()}
	return errors.Join(r.putConfig(), r.forget())
}

// forget removes all rules.
func (r *Resolver) forget() error {
	var errs []error
	for t := range r.Triples() {
		errs = append(errs, r.SetTable(t, nil))
	}
	for id := range r.Services() {
		errs = append(errs, r.RemoveService(id))
	}
	for l := range r.Redirects() {
		errs = append(errs, r.RemoveRedirect(l))
	}
	for l := range r.Gone() {
		errs = append(errs, r.SetGone(l, false))
	}
	for s := range r.Sources() {
		errs = append(errs, r.SetSource(s, false))
	}
	r.filtering = false
	return errors.Join(append(errs, r.sweepSilent())...)
}

// resolves is the program's switch.
func (r *Resolver) resolves() uint32 {
	if r.cfg.Plain {
		return 0
	}
	return 1
}

// AS is the prefix of the locators, invalid before SetSpace.
func (r *Resolver) AS() netip.Prefix {
	if r.config.As == 0 {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(sid.Locator(r.config.As).Addr(0), sid.ASBits)
}

func servicesWord(p netip.Prefix) uint32 { return uint32(sid.LocatorOf(p.Addr()) >> 32) }

func (r *Resolver) putConfig() error {
	r.writes++
	return r.objs.Config.Put(uint32(0), r.config)
}

// Adopted reports whether Open took over the rules of an earlier process.
func (r *Resolver) Adopted() bool { return r.adopted }

// Generation is the one given to the last Commit, 0 where there was none.
func (r *Resolver) Generation() uint64 { return r.config.Generation }

// Locator is the one given to SetLocator last, by this process or the one before it.
func (r *Resolver) Locator() sid.Locator { return sid.Locator(r.config.Locator) }

// SetLocator says whose address refusals come from.
func (r *Resolver) SetLocator(l sid.Locator) error {
	if r.config.Locator == uint64(l) {
		return nil
	}
	r.config.Locator = uint64(l)
	return r.putConfig()
}

// Commit says that the rules are complete up to generation. Before the first one the program lets all
// packets pass: it does not yet know what exists.
func (r *Resolver) Commit(generation uint64) error {
	if r.config.Ready == r.ready() && r.config.Generation == generation {
		return nil
	}
	r.config.Ready, r.config.Generation = r.ready(), generation
	return r.putConfig()
}

// Close lets go of program and maps. With keep, what is pinned stays and works on; without, it is
// detached from all ports and the pins are removed.
func (r *Resolver) Close(keep bool) error {
	var errs []error
	if !keep {
		errs = append(errs, r.detachAll())
	}
	for _, l := range r.links {
		errs = append(errs, l.Close())
	}
	errs = append(errs, r.objs.Close())
	if !keep && r.cfg.Pin != "" {
		errs = append(errs, os.RemoveAll(r.cfg.Pin))
	}
	return errors.Join(errs...)
}

func (r *Resolver) pin(name string) string { return filepath.Join(r.cfg.Pin, name) }
