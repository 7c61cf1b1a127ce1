package emud

import (
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// The values that package emu, its certificate and faults have of their own, as messages and back. What is lacking in a
// message is zero in the value: an engine may be of a program that a user built from another version.

// unixNano is a moment as messages have it, 0 for none.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func paramsMessage(p emu.Params) *emudv1.Params {
	return &emudv1.Params{
		Rate: p.Rate, Queue: p.Queue, DelayNs: int64(p.Delay), JitterNs: int64(p.Jitter), Unordered: p.Unordered,
		Loss: p.Loss, BurstLoss: p.BurstLoss, Burst: p.Burst, Duplicate: p.Duplicate,
		Reorder: p.Reorder, ReorderByNs: int64(p.ReorderBy), Seed: p.Seed,
	}
}

func paramsOf(m *emudv1.Params) emu.Params {
	return emu.Params{
		Rate: m.GetRate(), Queue: m.GetQueue(), Delay: time.Duration(m.GetDelayNs()), Jitter: time.Duration(m.GetJitterNs()), Unordered: m.GetUnordered(),
		Loss: m.GetLoss(), BurstLoss: m.GetBurstLoss(), Burst: m.GetBurst(), Duplicate: m.GetDuplicate(),
		Reorder: m.GetReorder(), ReorderBy: time.Duration(m.GetReorderByNs()), Seed: m.GetSeed(),
	}
}

func countersMessage(c emu.Counters) *emudv1.Counters {
	return &emudv1.Counters{
		Packets: c.Packets, Bytes: c.Bytes, Passed: c.Passed, PassedBytes: c.PassedByte, Lost: c.Lost, LostBurst: c.LostBurst,
		Overflow: c.Overflow, Duplicated: c.Duplicated, Reordered: c.Reordered, Parts: c.Parts,
	}
}

func countersOf(m *emudv1.Counters) emu.Counters {
	return emu.Counters{
		Packets: m.GetPackets(), Bytes: m.GetBytes(), Passed: m.GetPassed(), PassedByte: m.GetPassedBytes(), Lost: m.GetLost(), LostBurst: m.GetLostBurst(),
		Overflow: m.GetOverflow(), Duplicated: m.GetDuplicated(), Reordered: m.GetReordered(), Parts: m.GetParts(),
	}
}

func lateMessage(l emu.LateStats) *emudv1.Late {
	return &emudv1.Late{Packets: l.Packets, P50Ns: int64(l.P50), P99Ns: int64(l.P99), P999Ns: int64(l.P999), MaxNs: int64(l.Max)}
}

func lateOf(m *emudv1.Late) emu.LateStats {
	return emu.LateStats{
		Packets: m.GetPackets(), P50: time.Duration(m.GetP50Ns()), P99: time.Duration(m.GetP99Ns()),
		P999: time.Duration(m.GetP999Ns()), Max: time.Duration(m.GetMaxNs()),
	}
}

func rateMessage(r emu.RateStats) *emudv1.Rate {
	return &emudv1.Rate{Windows: r.Windows, Mean: r.Mean, Min: r.Min, Max: r.Max}
}

func rateOf(m *emudv1.Rate) emu.RateStats {
	return emu.RateStats{Windows: m.GetWindows(), Mean: m.GetMean(), Min: m.GetMin(), Max: m.GetMax()}
}

func lineMessage(s emu.LineStats) *emudv1.Line {
	return &emudv1.Line{
		Params: paramsMessage(s.Params), Counters: countersMessage(s.Counters), Cut: s.Cut, Refused: s.Refused, Starved: s.Starved, Missing: s.Missing,
		Late: lateMessage(s.Late), Rate: rateMessage(s.Rate), Realtime: s.Realtime, Busy: s.Busy, SetForNs: int64(s.SetFor), Before: countersMessage(s.Before),
	}
}

func lineOf(m *emudv1.Line) emu.LineStats {
	return emu.LineStats{
		Params: paramsOf(m.GetParams()), Counters: countersOf(m.GetCounters()), Cut: m.GetCut(), Refused: m.GetRefused(), Starved: m.GetStarved(), Missing: m.GetMissing(),
		Late: lateOf(m.GetLate()), Rate: rateOf(m.GetRate()), Realtime: m.GetRealtime(), Busy: m.GetBusy(), SetFor: time.Duration(m.GetSetForNs()),
		Before: countersOf(m.GetBefore()),
	}
}

func shardMessage(s emu.ShardStats) *emudv1.Shard {
	return &emudv1.Shard{
		Routers: int32(s.Routers), Edges: int32(s.Edges), Realtime: s.Realtime, Busy: s.Busy, Worked: s.Worked, Turns: lateMessage(s.Turns), Pauses: s.Pauses,
	}
}

func shardOf(m *emudv1.Shard) emu.ShardStats {
	return emu.ShardStats{
		Routers: int(m.GetRouters()), Edges: int(m.GetEdges()), Realtime: m.GetRealtime(), Busy: m.GetBusy(), Worked: m.GetWorked(),
		Turns: lateOf(m.GetTurns()), Pauses: m.GetPauses(),
	}
}

func boundsMessage(b fidelity.Bounds) *emudv1.Bounds {
	late, turn := int64(b.LateP99), int64(b.Turn)
	return &emudv1.Bounds{LateP99Ns: &late, Rate: &b.Rate, TurnP99Ns: &turn}
}

// boundsOf are the others where a message does not say them.
func boundsOf(m *emudv1.Bounds, b fidelity.Bounds) fidelity.Bounds {
	if m == nil {
		return b
	}
	if m.LateP99Ns != nil {
		b.LateP99 = time.Duration(*m.LateP99Ns)
	}
	if m.Rate != nil {
		b.Rate = *m.Rate
	}
	if m.TurnP99Ns != nil {
		b.Turn = time.Duration(*m.TurnP99Ns)
	}
	return b
}

func certificateMessage(c fidelity.Certificate) *emudv1.Certificate {
	m := &emudv1.Certificate{Faithful: c.Faithful, Bounds: boundsMessage(c.Bounds), SinceUnixNs: unixNano(c.Since)}
	for _, reason := range c.Reasons {
		m.Reasons = append(m.Reasons, text(reason))
	}
	for i := range c.Links {
		m.Rows = append(m.Rows, rowMessage(&c.Links[i]))
	}
	for _, s := range c.Shards {
		m.Shards = append(m.Shards, shardMessage(s))
	}
	return m
}

func certificateOf(m *emudv1.Certificate) fidelity.Certificate {
	c := fidelity.Certificate{Faithful: m.GetFaithful(), Reasons: m.GetReasons(), Bounds: boundsOf(m.GetBounds(), fidelity.Bounds{}), Since: moment(m.GetSinceUnixNs())}
	for _, row := range m.GetRows() {
		c.Links = append(c.Links, rowOf(row))
	}
	for _, s := range m.GetShards() {
		c.Shards = append(c.Shards, shardOf(s))
	}
	return c
}

func rowMessage(r *fidelity.Row) *emudv1.Row {
	m := &emudv1.Row{
		From: r.From, To: r.To, Asked: r.Asked, SinceUnixNs: unixNano(r.Since), Seconds: r.Seconds, Packets: r.Packets,
		RateAsked: r.RateAsked, Rate: rateMessage(r.Rate), DelayAskedNs: int64(r.DelayAsked),
		Late: lateMessage(r.Late), TooLate: r.TooLate, LateBoundNs: int64(r.LateBound),
		LossAsked: r.LossAsked, Loss: r.Loss, Overflow: r.Overflow, Missing: r.Missing,
	}
	for _, fault := range r.Faults {
		m.Faults = append(m.Faults, text(fault))
	}
	return m
}

func rowOf(m *emudv1.Row) fidelity.Row {
	return fidelity.Row{
		From: m.GetFrom(), To: m.GetTo(), Faults: m.GetFaults(), Asked: m.GetAsked(), Since: moment(m.GetSinceUnixNs()), Seconds: m.GetSeconds(), Packets: m.GetPackets(),
		RateAsked: m.GetRateAsked(), Rate: rateOf(m.GetRate()), DelayAsked: time.Duration(m.GetDelayAskedNs()),
		Late: lateOf(m.GetLate()), TooLate: m.GetTooLate(), LateBound: time.Duration(m.GetLateBoundNs()),
		LossAsked: m.GetLossAsked(), Loss: m.GetLoss(), Overflow: m.GetOverflow(), Missing: m.GetMissing(),
	}
}

func linkOf(m *emudv1.Link) LinkState {
	s := LinkState{Link: int(m.GetLink()), Causes: m.GetCauses()}
	for i, end := range m.GetEnds() {
		if i < len(s.Ends) {
			s.Ends[i], s.Inside[i], s.Lines[i] = end.GetNode(), end.GetInside(), lineOf(end.GetLine())
		}
	}
	return s
}

func routerOf(m *emudv1.Router) RouterState {
	c := m.GetCounters()
	s := RouterState{
		Name: m.GetName(), Program: m.GetProgram(), Shard: int(m.GetShard()), Down: m.GetDown(), Failure: m.GetFailure(), Ports: many(m.GetPorts(), portOf),
		Counters: emu.RouterCounters{
			In: c.GetIn(), Dropped: c.GetDropped(), Down: c.GetDown(), Refused: c.GetRefused(), Local: c.GetLocal(), Made: c.GetMade(), Starved: c.GetStarved(),
		},
	}
	if f := m.GetFeed(); f != nil {
		s.Feed = &FeedState{Kind: f.Kind, Routes: int(f.Routes), Changes: int(f.Changes), Last: moment(f.LastUnixNs), Error: f.Error}
	}
	return s
}

func portOf(m *emudv1.Port) PortState {
	return PortState{Port: int(m.GetPort()), Far: m.GetFar(), Link: int(m.GetLink()), Down: m.GetDown()}
}

func handlerOf(m *emudv1.Handler) HandlerState {
	return HandlerState{Name: m.GetName(), Doc: m.GetDoc(), Read: m.GetRead(), Write: m.GetWrite()}
}

func faultMessage(f Fault) *emudv1.Fault {
	return &emudv1.Fault{Link: narrow(f.Link), Cause: f.Cause, Router: text(f.Router), Port: narrow(f.Port), Down: f.Down}
}

func faultOf(m *emudv1.Fault) Fault {
	if m == nil {
		return Fault{}
	}
	return Fault{Link: wide(m.Link), Cause: m.GetCause(), Router: m.GetRouter(), Port: wide(m.Port), Down: m.GetDown()}
}

func narrow(n *int) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n)
	return &v
}

func wide(n *int32) *int {
	if n == nil {
		return nil
	}
	v := int(*n)
	return &v
}

func routesMessage(r Routes) *emudv1.Routes {
	return &emudv1.Routes{Faults: int32(r.Faults), Installed: int32(r.Installed), Changed: int32(r.Changed), TookNs: int64(r.Took), Error: text(r.Error)}
}

func readRoutes(m *emudv1.Routes) Routes {
	return Routes{
		Faults: int(m.GetFaults()), Installed: int(m.GetInstalled()), Changed: int(m.GetChanged()), Took: time.Duration(m.GetTookNs()), Error: m.GetError(),
	}
}
