package ofconn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestAnswersFindWhoAsked(t *testing.T) {
	bubble(t, Config{}, func(p *peer) {
		first, second := p.want(ofp.TypeGetConfigRequest), p.want(ofp.TypeGetConfigRequest)
		p.say(second.XID, ofp.GetConfigReply{Config: ofp.Config{MissLen: 2}})
		p.say(99999, ofp.GetConfigReply{Config: ofp.Config{MissLen: 3}}) // nobody's
		p.say(first.XID, ofp.GetConfigReply{Config: ofp.Config{MissLen: 1}})
		ask := p.want(ofp.TypeMultipartRequest)
		p.say(ask.XID, ofp.MultipartReply{More: true, Part: ofp.TablesStats{{Table: 1}}})
		p.say(0, ofp.PortStatus{Reason: ofp.PortDeleted})
		p.say(ask.XID, ofp.MultipartReply{Part: ofp.TablesStats{{Table: 2}}})
		p.say(p.want(ofp.TypeRoleRequest).XID, ofp.Refusal("OFPRRFC_STALE"))
		p.obey(nothing)
	}, func(t *testing.T, c *Conn) {
		answer := make(chan uint16)
		for range 2 {
			go func() {
				reply, err := c.Ask(within(t), ofp.GetConfigRequest{})
				if err != nil {
					t.Error(err)
				}
				answer <- reply.(ofp.GetConfigReply).MissLen
			}()
			synctest.Wait()
		}
		if a, b := <-answer, <-answer; a+b != 3 {
			t.Errorf("answers %d and %d, want 1 and 2", a, b)
		}
		parts, err := c.Collect(within(t), ofp.AskTableStats{})
		if err != nil || len(parts) != 2 || parts[1].(ofp.TablesStats)[0].Table != 2 {
			t.Errorf("Collect = %+v, %v; want both parts", parts, err)
		}
		if _, err := c.SetRole(within(t), ofp.RolePrimary, 1); !errors.Is(err, ofp.Refusal("OFPRRFC_STALE")) {
			t.Errorf("SetRole = %v, want the refusal", err)
		}
		for _, want := range []ofp.Type{ofp.TypeGetConfigReply, ofp.TypePortStatus} {
			if m := <-c.Events(); m.Body.Type(m.Version) != want {
				t.Errorf("event %+v, want %v", m, want)
			}
		}
	})
}

func TestDoCollectsRefusals(t *testing.T) {
	bubble(t, Config{}, func(p *peer) {
		p.obey(func(m ofp.Message) {
			if f := m.Body.(ofp.FlowMod); f.Priority%2 == 1 {
				p.say(m.XID, ofp.Refusal("OFPFMFC_TABLE_FULL"))
			}
		})
	}, func(t *testing.T, c *Conn) {
		var flows []ofp.Body
		for i := range uint16(10) {
			flows = append(flows, ofp.FlowMod{Priority: i})
		}
		err := c.Do(within(t), flows...)
		if n := strings.Count(err.Error(), "OFPFMFC_TABLE_FULL"); n != 5 || !errors.Is(err, ofp.Refusal("OFPFMFC_TABLE_FULL")) {
			t.Errorf("Do = %v, want five refusals", err)
		}
		if err := c.Do(within(t), ofp.FlowMod{}); err != nil {
			t.Errorf("Do = %v after refusals of others", err)
		}
		if err := c.Send(ofp.FlowMod{Priority: 1}); err != nil {
			t.Error(err)
		}
		if m := <-c.Events(); !errors.Is(m.Body.(ofp.Error), ofp.Refusal("OFPFMFC_TABLE_FULL")) {
			t.Errorf("event %+v, want the refusal of what Send sent", m)
		}
		if err := c.Send(ofp.FlowMod{}, ofp.GroupMod{Selection: &ofp.Selection{Method: strings.Repeat("x", 16)}}); !errors.Is(err, ofp.ErrLength) {
			t.Errorf("Send = %v, want a complaint about the method", err)
		}
	})
}

func TestPacketsBeyondTheQueueAreDroppedAndCounted(t *testing.T) {
	bubble(t, Config{PacketIns: 10}, func(p *peer) {
		for i := range uint64(1000) {
			p.say(0, ofp.PacketIn{Cookie: i})
		}
		p.obey(nothing)
	}, func(t *testing.T, c *Conn) {
		if err := c.Do(within(t)); err != nil { // the flood holds up nothing
			t.Error(err)
		}
		if n := c.Counts(); n != (Counts{PacketIns: 1000, Dropped: 990}) {
			t.Errorf("counts %+v, want 1000 packets of which 990 dropped", n)
		}
		for i := range uint64(10) {
			if p := <-c.PacketIns(); p.Cookie != i {
				t.Errorf("packet %d is %d: want the oldest, in order", i, p.Cookie)
			}
		}
	})
}

// TestTheEnd has each way in which a connection ends, and that all who wait learn why.
func TestTheEnd(t *testing.T) {
	damaged := []byte{6, 14, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // a flow-mod of 16 bytes
	for _, c := range []struct {
		name   string
		script func(p *peer)
		want   error
		after  time.Duration
	}{
		{"it hangs up", func(p *peer) { p.hear() }, nil, 0},
		{"it hangs up within a message", func(p *peer) { p.hear(); p.raw([]byte{6, 14, 1, 0, 0}) }, nil, 0},
		{"it says nothing more", func(p *peer) { p.obeyNothing() }, ErrSilent, 15 * time.Second},
		{"it takes nothing more", func(p *peer) { time.Sleep(time.Hour) }, ErrSilent, 15 * time.Second},
		{"it says what cannot be cut", func(p *peer) { p.raw([]byte{6, 14, 0, 3, 0, 0, 0, 0}); p.obeyNothing() }, ErrDamaged, 0},
		{"it says what cannot be read, too often", func(p *peer) {
			for range 17 {
				p.raw(damaged)
			}
			p.obeyNothing()
		}, ErrDamaged, 0},
		{"it has too much to say, too often", func(p *peer) {
			for range 17 {
				p.say(0, ofp.Error{Data: make([]byte, maxNews)})
			}
			p.obeyNothing()
		}, ErrDamaged, 0},
		{"it says another version", func(p *peer) { p.sayIn(ofp.V13, 0, ofp.BarrierReply{}); p.obeyNothing() }, ErrDamaged, 0},
		{"nobody takes its events", func(p *peer) {
			for range 101 {
				p.say(0, ofp.PortStatus{})
			}
			p.obeyNothing()
		}, ErrBehind, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Config{Events: 100}, c.script, func(t *testing.T, conn *Conn) {
				start := time.Now()
				err := conn.Do(within(t), ofp.FlowMod{})
				<-conn.Done()
				if took := time.Since(start); took != c.after {
					t.Errorf("ended after %v, want %v", took, c.after)
				}
				if err == nil || !errors.Is(conn.Err(), c.want) && c.want != nil {
					t.Errorf("Do = %v, Err = %v; want %v", err, conn.Err(), c.want)
				}
				for range conn.Events() {
				}
				if _, open := <-conn.PacketIns(); open {
					t.Error("PacketIns is still open")
				}
				if err := conn.Send(ofp.FlowMod{}); !errors.Is(err, conn.Err()) {
					t.Errorf("Send = %v after the end, want %v", err, conn.Err())
				}
				if _, err := conn.Ask(within(t), ofp.GetConfigRequest{}); !errors.Is(err, conn.Err()) {
					t.Errorf("Ask = %v after the end, want %v", err, conn.Err())
				}
			})
		})
	}
}

// obeyNothing takes what comes and says nothing.
func (p *peer) obeyNothing() {
	for {
		if _, ok := p.hear(); !ok {
			return
		}
	}
}

func TestEchoKeepsAnIdleConnection(t *testing.T) {
	echoes := 0
	bubble(t, Config{}, func(p *peer) {
		for {
			m, ok := p.hear()
			if !ok {
				return
			}
			echoes++
			p.say(m.XID, ofp.EchoReply(m.Body.(ofp.EchoRequest)))
		}
	}, func(t *testing.T, c *Conn) {
		time.Sleep(time.Hour) // the bubble's
		synctest.Wait()
		if c.Err() != nil || echoes < 400 || echoes > 500 {
			t.Errorf("after an hour: %v, %d echoes; want one in 7.5 s", c.Err(), echoes)
		}
	})
}

func TestSendersWaitForRoomAndForNoLonger(t *testing.T) {
	bubble(t, Config{Outgoing: 1000}, func(p *peer) {
		time.Sleep(time.Second)
		for range 200 {
			p.want(ofp.TypeFlowMod)
		}
		time.Sleep(time.Hour)
	}, func(t *testing.T, c *Conn) {
		start := time.Now()
		for range 200 {
			if err := c.Send(ofp.FlowMod{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("200 flows took %v, want the second that the switch waited", took)
		}
		var err error
		for err == nil {
			err = c.Send(ofp.FlowMod{})
		}
		if !errors.Is(err, ErrSilent) {
			t.Errorf("Send = %v to a switch that takes nothing, want %v", err, ErrSilent)
		}
	})
}

func TestAnAnswerThatIsDamagedReachesWhoAsked(t *testing.T) {
	bubble(t, Config{Answer: 4000}, func(p *peer) {
		m := p.want(ofp.TypeGetConfigRequest)
		p.raw([]byte{6, 8, 0, 9, 0, 0, byte(m.XID >> 8), byte(m.XID), 0})
		m = p.want(ofp.TypeMultipartRequest)
		for range 100 { // an answer without end
			p.say(m.XID, ofp.MultipartReply{More: true, Part: ofp.TablesStats{{Table: 1}, {Table: 2}}})
		}
		p.obey(nothing)
	}, func(t *testing.T, c *Conn) {
		if _, err := c.Ask(within(t), ofp.GetConfigRequest{}); !errors.Is(err, ErrDamaged) || !errors.Is(err, ofp.ErrLength) {
			t.Errorf("Ask = %v, want %v of %v", err, ErrDamaged, ofp.ErrLength)
		}
		if _, err := c.Collect(within(t), ofp.AskTableStats{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("Collect = %v, want %v", err, ErrDamaged)
		}
		if err := c.Do(within(t)); err != nil || c.Counts().Damaged != 1 {
			t.Errorf("Do = %v, counts %+v: want the connection to go on", err, c.Counts())
		}
	})
}

func TestWhoGivesUpAskingHurtsNobody(t *testing.T) {
	bubble(t, Config{}, func(p *peer) {
		m := p.want(ofp.TypeGetConfigRequest)
		next := p.want(ofp.TypeGetConfigRequest)
		p.say(m.XID, ofp.GetConfigReply{Config: ofp.Config{MissLen: 1}}) // late
		p.say(next.XID, ofp.GetConfigReply{Config: ofp.Config{MissLen: 2}})
		p.obey(nothing)
	}, func(t *testing.T, c *Conn) {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Ask(short, ofp.GetConfigRequest{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ask = %v, want its context's end", err)
		}
		reply, err := c.Ask(within(t), ofp.GetConfigRequest{})
		if err != nil || reply.(ofp.GetConfigReply).MissLen != 2 {
			t.Errorf("the next Ask = %+v, %v; want its own answer", reply, err)
		}
	})
}

func TestBundlesAreCommittedWholeOrDiscarded(t *testing.T) {
	safety.Test(t, safety.Record)
	for _, refused := range []bool{false, true} {
		var kinds []ofp.BundleKind
		bubble(t, Config{}, func(p *peer) {
			p.obey(func(m ofp.Message) {
				switch body := m.Body.(type) {
				case ofp.BundleControl:
					kinds = append(kinds, body.Kind)
					p.say(m.XID, ofp.BundleControl{ID: body.ID, Kind: body.Kind + 1, Flags: body.Flags})
				case ofp.BundleAdd:
					if body.Message.XID != m.XID {
						t.Errorf("a message of number %d in one of %d", body.Message.XID, m.XID)
					}
					if refused {
						p.say(m.XID, ofp.Refusal("OFPBFC_MSG_UNSUP"))
					}
				}
			})
		}, func(t *testing.T, c *Conn) {
			err := c.Bundle(within(t), ofp.FlowMod{}, ofp.GroupMod{})
			if errors.Is(err, ofp.Refusal("OFPBFC_MSG_UNSUP")) != refused {
				t.Errorf("refused %v: Bundle = %v", refused, err)
			}
			c.Do(within(t))
			want := ofp.BundleCommit
			if refused {
				want = ofp.BundleDiscard
			}
			if len(kinds) != 2 || kinds[0] != ofp.BundleOpen || kinds[1] != want {
				t.Errorf("refused %v: the switch was told %v, want open and %v", refused, kinds, want)
			}
		})
	}
}
