package switchd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/backoff"
	"scaffold.dev/scaffold/internal/core/replica"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/sid"
)

// A writer is what is on its way into the switch. One change is under way at a time; what comes meanwhile is
// the next.
type writer struct {
	learned bool                        // the tables know what the switch has
	synced  bool                        // the controller has told all; before, nothing that is there may go
	naming  replica.Naming[sid.Locator] // of hosts to be probed
	busy    bool
	again   bool // modules wish something else than what is on its way before the rules

	ordered    uint64  // generation that the tables have
	generation uint64  // and that the switch has
	errs       []error // of orders that could not be read
	failing    bool
	pause      backoff.Backoff // before it is tried again
	said       string          // the last of them that was told of
	unheld     string          // what of the rules the switch cannot have
	changes    uint64          // writes begun, so that a check knows whether it was overtaken
	since      time.Time
	checked    bool // what is there was compared with what should be, since the connection began
}

// How many messages go into one bundle, and when a switch that refuses is tried again.
const (
	bundleMost = 5000
	retryFirst = time.Second
	retryLast  = 30 * time.Second
)

// checkEvery is how often what a switch has is compared with what it was told. That entries are gone is seen sooner, by
// their number.
var checkEvery = time.Minute

// begin has the switch punt what modules wait for, whoever else is still to speak, and reads what it has.
func (m *member) begin() {
	m.writer = writer{generation: m.writer.generation, since: time.Now(), pause: backoff.Backoff{First: retryFirst, Last: retryLast}}
	m.told = map[owner]uint64{}
	m.prime()
}

// prime puts in what modules wish before the controller has told its rules: hosts reach it by their packets.
// What is there already is left alone, and nothing is taken out.
func (m *member) prime() {
	w := &m.writer
	if w.busy {
		w.again = true
		return
	}
	w.busy, w.again, w.learned = true, false, false
	w.changes++
	first := m.newTables()
	m.own(first)
	go func() { // ends with the connection
		h, err := m.read()
		if err == nil {
			first.Learn(h.flows, h.groups, h.meters)
			err = m.deliver(slices.DeleteFunc(first.Drain(), removes))
		}
		m.post(func() { m.primed(err) })
	}()
}

func (m *member) primed(err error) {
	if err != nil {
		m.log.Warn("hosts may have to wait for the controller's rules", "error", err)
	}
	m.writer.busy = false
	if m.writer.again {
		m.prime()
		return
	}
	m.relearn(0)
}

func removes(b ofp.Body) bool {
	switch b := b.(type) {
	case ofp.FlowMod:
		return b.Command == ofp.FlowDelete || b.Command == ofp.FlowDeleteStrict
	case ofp.GroupMod:
		return b.Command == ofp.GroupDelete
	case ofp.MeterMod:
		return b.Command == ofp.MeterDelete
	}
	return false
}

// settle writes what the tables have to say, unless a write is under way or it is too early: a switch that comes
// again may have routes to neighbours that are still looked for.
func (m *member) settle() {
	w := &m.writer
	if m.tables == nil || w.busy || w.naming.Under() || !w.learned || !w.synced || !w.checked && m.looking && m.tables.Waiting() > 0 {
		return
	}
	bodies := m.tables.Drain()
	generation, news := w.ordered, m.untold()
	if len(bodies) == 0 {
		m.holds(news)
		m.written(generation, nil)
		return
	}
	w.busy = true
	w.changes++
	m.counted.Bundles++
	go func() { // ends with the connection
		err := m.deliver(bodies)
		m.post(func() {
			m.writer.busy = false
			if err == nil {
				m.holds(news)
			}
			m.written(generation, err)
		})
	}()
}

// untold are the calls of owners that the switch has obeyed once it has what was drained last, and that they do not know of.
func (m *member) untold() (news map[owner]uint64) {
	for of, calls := range m.wanted {
		if m.told[of] == calls || !m.tables.Holds(uint16(of)) {
			continue
		}
		if news == nil {
			news = map[owner]uint64{}
		}
		news[of] = calls
	}
	return news
}

// holds tells owners that the switch has what they wanted.
func (m *member) holds(news map[owner]uint64) {
	for of, calls := range news {
		m.told[of] = calls
		m.d.audience.held(of, m.spec.Name, calls)
	}
}

// deliver has the switch do all of bodies, unless it has been released.
func (m *member) deliver(bodies []ofp.Body) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.writing.ended {
		return errReleased
	}
	return m.write(bodies)
}

// write has the switch do all of bodies in a safe order: meters go beside bundles.
func (m *member) write(bodies []ofp.Body) error {
	before, bundle, after := oftables.Split(bodies)
	errs := []error{m.do(before, (*ofconn.Conn).Do)}
	for part := range slices.Chunk(bundle, bundleMost) {
		errs = append(errs, m.bundle(part))
	}
	return errors.Join(append(errs, m.do(after, (*ofconn.Conn).Do))...)
}

func (m *member) do(bodies []ofp.Body, how func(*ofconn.Conn, context.Context, ...ofp.Body) error) error {
	if len(bodies) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, askTimeout)
	defer cancel()
	return how(m.conn, ctx, bodies...)
}

// bundle has the switch do all at once; of what it refuses as a whole what it can.
func (m *member) bundle(bodies []ofp.Body) error {
	err := m.do(bodies, (*ofconn.Conn).Bundle)
	if err == nil || m.conn.Err() != nil {
		return err
	}
	return m.do(bodies, (*ofconn.Conn).Do)
}

// written tells the controller what the switch has now, and begins anew where it refused something.
func (m *member) written(generation uint64, err error) {
	w := &m.writer
	if errors.Is(err, errReleased) {
		return
	}
	if err != nil {
		m.counted.Errors++
	}
	if generation == w.generation && err == nil && !w.failing && len(w.errs) == 0 && w.checked {
		return
	}
	told := errors.Join(append(w.errs, err)...)
	w.errs = nil
	if m.session != nil && (generation != w.generation || told != nil) {
		a := &apiv1.Applied{Generation: generation}
		if told != nil {
			a.Error = short(told)
		}
		m.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: a}})
	}
	w.generation = generation
	if err == nil {
		w.failing, w.said = false, ""
		w.pause.Reset()
		if !w.checked {
			w.checked = true
			m.check(true)
		}
		return
	}
	w.failing = true
	if text := short(err); text != w.said && m.ctx.Err() == nil {
		w.said = text
		m.d.report("switch.error", m.spec.Name, "switch "+m.spec.Name+" does not take its rules: "+text)
	}
	m.relearn(w.pause.Next())
}

// short is an error on one line, of a length that fits an event.
func short(err error) string {
	lines := strings.Split(err.Error(), "\n")
	const most = 4
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}

// age takes out what nobody has used for a while, where nothing else is on its way.
func (m *member) age() {
	if m.tables != nil && !m.writer.busy {
		m.tables.Age()
	}
}
