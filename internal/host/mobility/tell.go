package mobility

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/history"
	"scaffold.dev/scaffold/wire"
)

// tell adds an event to a flow's history.
func (s *flows) tell(now time.Time, k session.Key, kind, text string) {
	s.history.Add(k, history.Event{At: now, Kind: kind, Text: text})
}

// positions notes how far the flows that a message is about had come before it.
func (s *inbound) positions(m wire.Message) []session.View {
	r, ok := m.(wire.Renegotiate)
	if !ok {
		return nil
	}
	list := make([]session.View, 0, len(r.Claims))
	for i := range r.Claims {
		if k, ok := s.engine.Owner(r.Claims[i].Quote); ok {
			v, _ := s.engine.View(k)
			list = append(list, v)
		}
	}
	return list
}

// tellMoves tells what the message did to them.
func (s *inbound) tellMoves(now time.Time, before []session.View) {
	for _, b := range before {
		a, ok := s.engine.View(b.Key)
		switch {
		case !ok:
		case a.Seen > b.Seen:
			s.reports.meter.Count("peer_moved", 1)
			s.tell(now, b.Key, "peer-move", fmt.Sprintf("the peer went from %v to %v", b.Peer.Locator, a.Peer.Locator))
		case b.State == session.Confirming && a.State != session.Confirming:
			s.tell(now, b.Key, "failover", fmt.Sprintf("goes on at %v", a.Peer.Locator))
			s.reports.summarize("flow.failover", session.Change{Key: b.Key, Service: b.Service})
		}
		if ok {
			s.history.Call(b.Key, a.Local.Socket)
		}
	}
}

// The controller hears of single flows so often at most; what is more is summed up.
const summaryEvery = 100 * time.Millisecond

// A summary counts what happened to flows of one kind, for one reason.
type summary struct {
	kind, reason string
}

// countedAs are the kinds of summaries as metrics name them.
var countedAs = map[string]string{"flow.failover": "failed_over", "flow.reset": "reset"}

// inWords adds to a reason what somebody could do about it.
func inWords(reason string) string {
	switch reason {
	case wire.Forbidden.String():
		return reason + ": the client may not connect to the service (`scaffold service access`)"
	case wire.NoInstance.String():
		return reason + ": nobody who may serve it can go on with it"
	}
	return reason
}

// reports are what is told of flows, to the controller and in metrics: of many at once.
type reports struct {
	log        *slog.Logger
	post       func(func())
	controller Controller
	meter      Meter

	sums map[summary]int // not told yet
}

// summarize counts a flow for the next event to the controller.
func (s *reports) summarize(kind string, c session.Change) {
	s.meter.Count(countedAs[kind], 1)
	if s.sums == nil {
		s.sums = map[summary]int{}
		time.AfterFunc(summaryEvery, func() { s.post(s.reportSums) })
	}
	s.sums[summary{kind, c.Reason.String()}]++
}

func (s *reports) reportSums() {
	for what, n := range s.sums {
		attrs := map[string]string{"flows": strconv.Itoa(n)}
		text := flowsText(n) + " went on elsewhere"
		if what.kind == "flow.reset" {
			text, attrs["reason"] = flowsText(n)+" ended: "+inWords(what.reason), what.reason
		}
		s.report(what.kind, text, attrs)
	}
	s.sums = nil
}

// reportMove tells the controller how a move went.
func (s *moves) reportMove(now time.Time, j *journey) {
	took := now.Sub(j.began)
	lost := 0
	for k := range j.left {
		if _, ok := s.engine.View(k); ok {
			lost++
		}
	}
	attrs := map[string]string{
		"flows": strconv.Itoa(j.flows), "unanswered": strconv.Itoa(lost), "took_us": strconv.FormatInt(took.Microseconds(), 10),
		"from": j.from.String(), "to": j.to.String(),
	}
	s.reports.meter.Count("moved", j.flows)
	s.reports.meter.Moved(took)
	s.log.Info("flows have moved", "flows", j.flows, "unanswered", lost, "from", j.from, "to", j.to, "took", took)
	s.reports.report("flow.move", fmt.Sprintf("%s moved to %v in %v", flowsText(j.flows-lost), j.to, took.Round(time.Millisecond)), attrs)
}

// report is an event of this host for the network's history.
func (s *reports) report(kind, text string, attrs map[string]string) {
	s.controller.Report(kind, text, attrs)
}

// flowsText is "1 flow", "2 flows".
func flowsText(n int) string {
	if n == 1 {
		return "1 flow"
	}
	return strconv.Itoa(n) + " flows"
}
