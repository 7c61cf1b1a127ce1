package switchd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/controller"
)

// packetQueue is how many packets may wait for a module.
const packetQueue = 256

// A mind is what modules ask of the controller.
type mind interface {
	hosts() []controller.Host
	links() []controller.Link
	path(ctx context.Context, from, to string) (controller.Path, error)
}

// modules run the controller's modules, each in a goroutine of its own, and keep what they want switches to
// hold. They are the audience of the switches.
type modules struct {
	plane    plane
	mind     mind
	events   chronicle
	log      *slog.Logger
	patience time.Duration // how long a call may take
	flows    *flowTable

	mu       sync.Mutex
	all      []*module
	switches map[string]controller.Switch // the last that was heard of each
	hosts    map[string]controller.Host
	wake     chan struct{} // a switch that was not known came
	came     []string
}

func newModules(p plane, m mind, events chronicle, log *slog.Logger) *modules {
	return &modules{
		plane: p, mind: m, events: events, log: log, patience: controller.Patience, flows: newFlowTable(p),
		switches: make(map[string]controller.Switch), hosts: make(map[string]controller.Host),
		wake: make(chan struct{}, 1),
	}
}

var moduleName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// add takes a module; all are added before run.
func (ms *modules) add(of owner, code controller.Module) error {
	name := code.Name()
	if !moduleName.MatchString(name) {
		return fmt.Errorf("module %.80q: want a name of up to 32 letters, digits and hyphens, in lower case", name)
	}
	for _, m := range ms.all {
		if m.name == name || m.of == of {
			return fmt.Errorf("module %s: there is one of this name or owner already: give it another name", name)
		}
	}
	_, keeps := code.(controller.Keeper)
	ms.flows.add(of, name, keeps)
	ms.all = append(ms.all, newModule(ms, of, name, code))
	return nil
}

// run starts the modules and returns when ctx has ended and they have; one that hangs is left behind.
func (ms *modules) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, m := range ms.all {
		running.Go(func() { m.run(ctx) })
	}
	for ctx.Err() == nil {
		select {
		case <-ms.wake:
			ms.mu.Lock()
			came := ms.came
			ms.came = nil
			ms.mu.Unlock()
			for _, at := range came {
				ms.complain(ms.flows.switchCame(at))
			}
		case <-ctx.Done():
		}
	}
	running.Wait()
}

func (ms *modules) complain(err error) {
	if err != nil {
		ms.log.Error("a switch does not take the flows of a module", "error", err)
	}
}

// changed implements audience.
func (ms *modules) changed(s controller.Switch) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if _, known := ms.switches[s.Name]; !known {
		ms.came = append(ms.came, s.Name)
		select {
		case ms.wake <- struct{}{}:
		default: // it is awake
		}
	}
	ms.switches[s.Name] = s
	for _, m := range ms.all {
		m.hearSwitch(s)
	}
}

// held implements audience.
func (ms *modules) held(of owner, at string, calls uint64) {
	for _, m := range ms.all {
		if m.of == of {
			m.hearHeld(at, calls)
		}
	}
}

// expired implements audience.
func (ms *modules) expired(of owner, at string, id uint32) {
	f, ok := ms.flows.expired(of, at, id)
	if !ok {
		return
	}
	for _, m := range ms.all {
		if m.of == of {
			m.hearExpired(at, f)
		}
	}
}

// punted implements audience.
func (ms *modules) punted(_ owner, id uint32, p controller.Packet) {
	subs := ms.flows.subscribers(id, p.Switch)
	for i, s := range subs {
		own := p
		if i < len(subs)-1 { // the last may have ours
			own.Data = slices.Clone(p.Data)
		}
		s.module.hearPacket(s, own)
	}
}

// hostChanged tells of a host that came, went or changed.
func (ms *modules) hostChanged(h controller.Host) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.hosts[h.Name] = h
	if h.State == hostGone {
		delete(ms.hosts, h.Name)
	}
	for _, m := range ms.all {
		m.hearHost(h)
	}
}

// moduleCounts are what was counted of a module.
type moduleCounts struct {
	name                      string
	packets, dropped, reports uint64
	stopped                   bool
}

func (ms *modules) counts() (list []moduleCounts) {
	for _, m := range ms.all {
		list = append(list, moduleCounts{m.name, m.packets.Load(), m.dropped.Load(), m.refused.Load(), m.isStopped()})
	}
	return list
}

// ownerName says who an owner is, for people.
func (ms *modules) ownerName(of owner) string {
	switch of {
	case ownScaffold:
		return "scaffold"
	case ownOperator:
		return "operator"
	}
	for _, m := range ms.all {
		if m.of == of {
			return "module " + m.name
		}
	}
	return fmt.Sprintf("module %d", of)
}

func byKey[K cmp.Ordered, V any](m map[K]V) (list []V) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

// A counter that modules and metrics share.
type counter = atomic.Uint64
