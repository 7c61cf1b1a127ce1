package switchd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/router/answers"
	"scaffold.dev/scaffold/sid"
)

// A member is a connected switch and, in its name, a router of the network. One goroutine, the loop, owns
// all that stands below inbox.
type member struct {
	d    *daemon
	spec Switch
	mac  ofp.MAC
	conn *ofconn.Conn
	log  *slog.Logger
	ctx  context.Context // ends with the connection
	end  context.CancelFunc
	left chan struct{} // closed when its name is free again
	view atomic.Pointer[controller.Switch]

	inbox    chan func()
	session  *agent.Session // nil while the controller is away
	ports    map[ofp.Port]controller.Port
	space    sid.Space
	locator  sid.Locator
	tables   *oftables.Tables // nil until the controller gave the locator
	answers  *answers.Answers
	writer   writer
	writing  writing
	wanted   map[owner]uint64 // how often owners had said what they wish when the tables took it
	told     map[owner]uint64 // with which of these they were told that the switch holds it
	tally    tally
	probes   *liveness.Probes
	hosts    *agent.Hosts
	paced    int // of the hosts that are probed, in the pace
	counted  condition
	joinedAs joinedAs
	leases   leases
	looking  bool // for neighbours: those that the network knew before count until it is over
}

func newMember(d *daemon, c *ofconn.Conn, spec Switch) *member {
	ctx, end := context.WithCancel(d.ctx)
	return &member{d: d, spec: spec, mac: macOf(spec.Datapath), conn: c, log: d.log.With("switch", spec.Name), ctx: ctx, end: end,
		left: make(chan struct{}), inbox: make(chan func(), 256), ports: map[ofp.Port]controller.Port{},
		looking: true,
		probes:  liveness.New(liveness.Limits{}), hosts: agent.NewHosts()}
}

// macOf is the router's hardware address: the datapath id's, as one that nobody sold.
func macOf(datapath uint64) (mac ofp.MAC) {
	for i := range mac {
		mac[i] = byte(datapath >> (40 - 8*i))
	}
	mac[0] = mac[0]&^1 | 2
	return mac
}

// lookFor is how long a switch that comes may take to find its neighbours: they may come again as well, and
// greet each second.
const lookFor = 3 * time.Second

// askTimeout bounds one question to a switch.
const askTimeout = 10 * time.Second

// alive asks the switch for anything at all.
func (m *member) alive() bool {
	ctx, cancel := context.WithTimeout(m.ctx, time.Second)
	defer cancel()
	_, err := m.conn.Ask(ctx, ofp.GetConfigRequest{})
	return err == nil
}

// run is the member until its connection ends.
func (m *member) run() {
	defer m.end()
	stop := context.AfterFunc(m.ctx, func() { m.conn.Close() })
	defer stop()
	m.counted = m.d.records.came(m.spec.Name, time.Now())
	desc, err := m.learnPorts()
	if err != nil {
		m.d.report("switch.refused", m.spec.Name, fmt.Sprintf("switch %s does not tell its ports: %v", m.spec.Name, err))
		return
	}
	m.d.report("switch.join", m.spec.Name, fmt.Sprintf("switch %s (%016x, %v, %s) is connected from %v",
		m.spec.Name, m.spec.Datapath, m.conn.Version(), desc, m.conn.RemoteAddr()))
	var all sync.WaitGroup
	stream := &agent.Router{Controllers: api.NewControllers([]string{m.d.cfg.Controller}), Log: m.log, Call: m.call, Join: m.join, Joined: m.joined,
		Rules: m.rules, Order: m.order, Parted: m.parted, Health: func(error) {}}
	all.Go(func() { stream.Converse(m.ctx) })
	all.Go(m.watch)
	m.loop()
	m.end()
	all.Wait()
	gone := m.condition() // the loop has ended
	gone.Up, gone.Since = false, time.Now()
	m.d.records.keep(m.spec.Name, gone)
	m.d.audience.changed(gone.Switch)
	if m.d.ctx.Err() == nil {
		m.d.report("switch.gone", m.spec.Name, fmt.Sprintf("switch %s is no longer connected: %v", m.spec.Name, m.conn.Err()))
	}
}

// loop does what others ask for and takes what the switch says; then it sees to what follows for its tables.
func (m *member) loop() {
	packets, events := m.conn.PacketIns(), m.conn.Events()
	check, looked, count := time.NewTicker(checkEvery), time.NewTimer(lookFor), time.NewTicker(countEvery)
	counters, renew := time.NewTicker(countersEvery), time.NewTicker(renewEvery)
	defer check.Stop()
	defer renew.Stop()
	defer count.Stop()
	defer counters.Stop()
	defer looked.Stop()
	defer func() { m.d.pace.hosts.Add(int64(-m.paced)) }()
	for {
		select {
		case f := <-m.inbox:
			f()
		case p, ok := <-packets:
			if !ok {
				return
			}
			m.packet(p)
		case e, ok := <-events:
			if !ok {
				return
			}
			m.event(e)
		case <-looked.C:
			m.looking = false
			m.linksChanged()
		case <-counters.C:
			m.tellCounters()
			m.age()
		case <-renew.C:
			m.leases.look = true
		case <-check.C:
			m.check(false)
		case <-count.C:
			m.count()
		case <-m.ctx.Done():
			return
		}
		m.d.pace.hosts.Add(int64(m.probes.Len() - m.paced))
		m.paced = m.probes.Len()
		m.renew(time.Now())
		m.settle()
	}
}

// nudge hands f to the loop; where much waits already, beside the caller.
func (m *member) nudge(f func()) {
	select {
	case m.inbox <- f:
	default:
		go m.post(f) // ends with the member
	}
}

// post hands f to the loop; after the end it is dropped.
func (m *member) post(f func()) {
	select {
	case m.inbox <- f:
	case <-m.ctx.Done():
	}
}

// call is post, and waits until the loop has done it. False: the member has ended, and the loop may still be doing it, so
// that nobody looks at what f writes.
func (m *member) call(f func()) bool {
	done := make(chan struct{})
	m.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-m.ctx.Done():
		return false
	}
}

// event takes what the switch says of itself.
func (m *member) event(e ofp.Message) {
	switch body := e.Body.(type) {
	case ofp.FlowRemoved:
		m.removed(body)
	case ofp.PortStatus:
		m.portStatus(body)
	case ofp.Error:
		m.counted.Errors++
		m.log.Warn("the switch refuses", "error", body)
	case ofp.RoleStatus:
		m.log.Info("role", "role", body)
	}
}
