package host

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"scaffold.dev/scaffold/sid"
)

// abiVersion is HOST_ABI of abi.h: the layout of the pinned maps.
const abiVersion = 4

const ethernetLen = 14

// ErrABI is in the error of Open when the pinned maps belong to a version that this one cannot read.
var ErrABI = errors.New("layout of another version")

// load creates the maps, or takes over the pinned ones.
func (e *Edge) load() error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("host edge: lift the locked-memory limit: %w (run as root)", err)
	}
	if err := e.makePins(); err != nil {
		return err
	}
	spec, err := e.spec(ethernetLen, false)
	if err != nil {
		return err
	}
	if err := e.size(spec); err != nil {
		return err
	}
	if err := spec.Variables["max_flows"].Set(e.cfg.MaxFlows); err != nil {
		return fmt.Errorf("host edge: set max_flows: %w", err)
	}
	counted := e.pinned(edgeMapPeers)
	var objects struct {
		programs
		edgeMaps
	}
	opts := ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: e.cfg.Pin}}
	if err := spec.LoadAndAssign(&objects, &opts); err != nil {
		return fmt.Errorf("host edge: load maps and programs: %w", err)
	}
	e.maps, e.programs[ethernetLen] = objects.edgeMaps, objects.programs
	if err := e.begin(); err != nil {
		return err
	}
	if err := e.takeRetired(); err != nil {
		return err
	}
	return e.mapPeers(counted)
}

// pinned reports whether a daemon before this one had the map.
func (e *Edge) pinned(name string) bool {
	if e.cfg.Pin == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(e.cfg.Pin, name))
	return err == nil
}

// makePins looks at what is pinned before anything is loaded beside it.
func (e *Edge) makePins() error {
	if e.cfg.Pin == "" {
		return nil
	}
	if err := os.MkdirAll(e.cfg.Pin, 0o700); err != nil {
		return fmt.Errorf("host edge: make pin directory: %w", err)
	}
	return CheckPins(e.cfg.Pin)
}

// CheckPins reports whether Open could adopt what is pinned in the directory, or finds nothing there. An error
// that is ErrABI does not go away by trying again.
func CheckPins(pin string) error {
	m, err := ebpf.LoadPinnedMap(filepath.Join(pin, edgeMapConfig), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host edge: look at the pinned maps: %w", err)
	}
	defer m.Close()
	raw, err := m.LookupBytes(uint32(0))
	if err == nil && len(raw) < 4 {
		err = fmt.Errorf("it has %d bytes", len(raw))
	}
	if err != nil {
		return fmt.Errorf("host edge: read the version of the maps in %s: %w", pin, err)
	}
	if v := binary.NativeEndian.Uint32(raw); v != abiVersion && v != 0 {
		return fmt.Errorf("host edge: maps in %s: %w: theirs %d, ours %d; start that version again, or stop it for good and remove the directory (this ends its flows)",
			pin, ErrABI, v, abiVersion)
	}
	return nil
}

// spec is the collection for links with a header of l2 bytes, of uplinks or of guests, with the address plan filled in.
func (e *Edge) spec(l2 uint32, guests bool) (*ebpf.CollectionSpec, error) {
	spec, err := loadEdge()
	if err != nil {
		return nil, fmt.Errorf("host edge: read the embedded programs: %w", err)
	}
	plan := e.cfg.Space
	services := plan.Services.Addr().As16()
	forGuests := uint32(0)
	if guests {
		forGuests = 1
	}
	values := map[string]any{
		"for_guests":      forGuests,
		"l2_len":          l2,
		"max_flows":       e.cfg.MaxFlows,
		"services_prefix": binary.NativeEndian.Uint32(services[:]),
		"as_prefix":       network(uint64(sid.LocatorOf(plan.AS.Addr()))),
		"identities":      network(uint64(sid.LocatorOf(plan.Identities.Addr()))),
	}
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("host edge: set %s: %w", name, err)
		}
	}
	return spec, nil
}

// network gives the number whose bytes in memory are v in network order.
func network(v uint64) uint64 {
	return binary.NativeEndian.Uint64(binary.BigEndian.AppendUint64(nil, v))
}

// size sets the capacities: ours for new maps, theirs for pinned ones.
func (e *Edge) size(spec *ebpf.CollectionSpec) error {
	spec.Maps[edgeMapEgressFlows].MaxEntries = e.cfg.MaxFlows
	spec.Maps[edgeMapIngressFlows].MaxEntries = 2 * e.cfg.MaxFlows // a flow that moves has several
	spec.Maps[edgeMapFormerIds].MaxEntries = 2 * e.cfg.MaxFlows
	spec.Maps[edgeMapAnswers].MaxEntries = e.cfg.MaxFlows // no flow takes the place of another's
	if e.cfg.Pin == "" {
		return nil
	}
	for _, name := range sharedMaps {
		spec.Maps[name].Pinning = ebpf.PinByName
		m, err := ebpf.LoadPinnedMap(filepath.Join(e.cfg.Pin, name), nil)
		if err != nil {
			continue // not there yet: LoadAndAssign pins it
		}
		spec.Maps[name].MaxEntries = m.MaxEntries()
		m.Close()
	}
	e.cfg.MaxFlows = spec.Maps[edgeMapEgressFlows].MaxEntries
	return nil
}

// begin gives a new edge its version and secret; an adopted one keeps both.
func (e *Edge) begin() error {
	var c edgeHostConfig
	if err := e.maps.Config.Lookup(uint32(0), &c); err != nil {
		return fmt.Errorf("host edge: read configuration: %w", err)
	}
	if e.adopted = c.Abi == abiVersion; e.adopted {
		e.secret = c.Secret
		return nil
	}
	var key [16]byte
	rand.Read(key[:]) // never fails
	c.Abi = abiVersion
	c.Secret = [2]uint64{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
	if err := e.maps.Config.Put(uint32(0), &c); err != nil {
		return fmt.Errorf("host edge: write configuration: %w", err)
	}
	e.secret = c.Secret
	return nil
}

// sharedMaps are all maps but the read-only variables, which belong to one load of the programs.
var sharedMaps = []string{
	edgeMapConfig, edgeMapIds, edgeMapPlaces, edgeMapEgressFlows, edgeMapIngressFlows,
	edgeMapAnswers, edgeMapEgressHalf, edgeMapIngressHalf, edgeMapServices, edgeMapInstances, edgeMapPolicies,
	edgeMapFragments, edgeMapScratch, edgeMapNewborns, edgeMapEvents, edgeMapDrops,
	edgeMapSteps, edgeMapAlias, edgeMapMeters, edgeMapBudgets, edgeMapCredits, edgeMapPeers, edgeMapTags, edgeMapFormerIds, edgeMapStrays, edgeMapSessions,
	edgeMapAdoptions, edgeMapGuards, edgeMapGuests, edgeMapGuestLinks, edgeMapOwners, edgeMapGuestSpaces, edgeMapJudged, edgeMapRecentPeers,
}

func (e *Edge) shared() map[string]*ebpf.Map {
	m := e.maps
	return map[string]*ebpf.Map{
		edgeMapConfig: m.Config, edgeMapIds: m.Ids, edgeMapPlaces: m.Places,
		edgeMapEgressFlows: m.EgressFlows, edgeMapIngressFlows: m.IngressFlows,
		edgeMapAnswers:    m.Answers,
		edgeMapEgressHalf: m.EgressHalf, edgeMapIngressHalf: m.IngressHalf,
		edgeMapServices: m.Services, edgeMapInstances: m.Instances, edgeMapPolicies: m.Policies,
		edgeMapFragments: m.Fragments, edgeMapScratch: m.Scratch, edgeMapNewborns: m.Newborns, edgeMapEvents: m.Events, edgeMapDrops: m.Drops,
		edgeMapSteps: m.Steps, edgeMapAlias: m.Alias, edgeMapMeters: m.Meters, edgeMapBudgets: m.Budgets, edgeMapCredits: m.Credits, edgeMapPeers: m.Peers, edgeMapTags: m.Tags, edgeMapFormerIds: m.FormerIds, edgeMapStrays: m.Strays, edgeMapSessions: m.Sessions,
		edgeMapAdoptions: m.Adoptions, edgeMapGuards: m.Guards,
		edgeMapGuests: m.Guests, edgeMapGuestLinks: m.GuestLinks, edgeMapOwners: m.Owners,
		edgeMapGuestSpaces: m.GuestSpaces, edgeMapJudged: m.Judged, edgeMapRecentPeers: m.RecentPeers,
	}
}

// unpin removes what we pinned, and the directory when nothing else is in it.
func (e *Edge) unpin() {
	if e.cfg.Pin == "" {
		return
	}
	for _, name := range sharedMaps {
		os.Remove(filepath.Join(e.cfg.Pin, name))
	}
	guests, _ := filepath.Glob(filepath.Join(e.cfg.Pin, "guest-*"))
	for _, pin := range guests {
		os.Remove(pin)
	}
	os.Remove(e.cfg.Pin)
}
