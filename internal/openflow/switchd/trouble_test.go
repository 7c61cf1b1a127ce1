package switchd

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// An impostor is the switch's end of a connection that a test plays badly.
type impostor struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
	id uint64
}

func (d *driven) impostor(id uint64) *impostor {
	d.t.Helper()
	nc, err := net.Dial("unix", strings.TrimPrefix(d.target, "unix:"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { nc.Close() })
	return &impostor{d.t, nc, bufio.NewReader(nc), id}
}

func (i *impostor) say(v ofp.Version, xid uint32, b ofp.Body) {
	i.t.Helper()
	bytes, err := ofp.Message{Version: v, XID: xid, Body: b}.Append(nil)
	if err != nil {
		i.t.Fatal(err)
	}
	i.nc.Write(bytes) // that the daemon has hung up is for the test to see elsewhere
}

// hear reads a message; false when the daemon has hung up.
func (i *impostor) hear() (m ofp.Message, ok bool) {
	head, err := i.in.Peek(ofp.HeaderLen)
	if err != nil {
		return m, false
	}
	h, err := ofp.ParseHeader(head)
	if err != nil {
		return m, false
	}
	b := make([]byte, h.Len)
	if _, err := io.ReadFull(i.in, b); err != nil {
		return m, false
	}
	m, err = ofp.Parse(b)
	return m, err == nil
}

// behave answers as a switch does that holds nothing and takes everything, until stop says so of what it heard.
func (i *impostor) behave(stop func(ofp.Message) bool) {
	i.say(ofp.V15, 0, ofp.Hello{Versions: ofp.Versions(ofp.V15)})
	for {
		m, ok := i.hear()
		if !ok || stop(m) {
			return
		}
		switch b := m.Body.(type) {
		case ofp.FeaturesRequest:
			i.say(ofp.V15, m.XID, ofp.FeaturesReply{DatapathID: i.id, Tables: 254})
		case ofp.EchoRequest:
			i.say(ofp.V15, m.XID, ofp.EchoReply(b))
		case ofp.BarrierRequest:
			i.say(ofp.V15, m.XID, ofp.BarrierReply{})
		case ofp.GetConfigRequest:
			i.say(ofp.V15, m.XID, ofp.GetConfigReply{})
		case ofp.BundleControl:
			b.Kind++
			i.say(ofp.V15, m.XID, b)
		case ofp.MultipartRequest:
			i.say(ofp.V15, m.XID, ofp.MultipartReply{Part: i.part(b.Ask)})
		}
	}
}

func (i *impostor) part(a ofp.Ask) ofp.Part {
	switch a.(type) {
	case ofp.AskDesc:
		return ofp.Desc{Datapath: fmt.Sprintf("liar-%x", i.id)}
	case ofp.AskPorts:
		return ofp.Ports{{Number: 1, Name: "p1"}}
	case ofp.AskGroups:
		return ofp.Groups{}
	case ofp.AskMeters:
		return ofp.Meters{}
	case ofp.AskMeterFeatures:
		return ofp.MeterFeatures{}
	}
	return ofp.Flows{}
}

func never(ofp.Message) bool { return false }

// until stops at a message of the kind.
func until[T ofp.Body](m ofp.Message) bool {
	_, is := m.Body.(T)
	return is
}

// What one switch does wrong is its own trouble: it is named, and another one takes its rules as ever.
func TestTroubleStaysWithTheSwitchThatMakesIt(t *testing.T) {
	defer func(d time.Duration) { sayEvery = d }(sayEvery)
	sayEvery = 0 // all of them come from one address
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}, Silence: time.Second})
	connected(t, ns, ovs, "good", "unix:"+ovs.Dir+"/of")
	good := d.accept(here)
	good.snapshot(1, hosts("good"))
	generation := uint64(1)
	for _, trouble := range []struct {
		what string
		make func(*testing.T)
	}{
		{"speaks 1.0 alone", func(t *testing.T) {
			d.impostor(1).nc.Write([]byte{1, 0, 0, 8, 0, 0, 0, 0})
			d.note("switch.refused", "1.0")
		}},
		{"sends garbage", func(t *testing.T) {
			i := d.impostor(2)
			i.behave(until[ofp.GetConfigRequest])
			junk := make([]byte, 1<<20)
			rand.Read(junk)
			i.nc.Write(junk)
			d.note("switch.gone", "cannot be read")
		}},
		{"breaks off in the middle of a message", func(t *testing.T) {
			i := d.impostor(3)
			i.behave(until[ofp.GetConfigRequest])
			i.nc.Write([]byte{6, 18, 0, 200, 0, 0})
			i.nc.Close()
			d.note("switch.gone", "liar-3")
		}},
		{"punts more than anybody can take", func(t *testing.T) {
			i := d.impostor(4)
			i.behave(until[ofp.GetConfigRequest])
			packet, err := ofp.Message{Version: ofp.V15, Body: ofp.PacketIn{Cookie: 0x5caf << 48, Match: ofp.Match{ofp.Uint(ofp.InPort, 1)}, Data: make([]byte, 1000)}}.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			many := []byte(strings.Repeat(string(packet), 1000))
			for range 100 {
				i.nc.Write(many)
			}
			go i.behave(never)
		}},
		{"does not read", func(t *testing.T) {
			i := d.impostor(5)
			i.behave(until[ofp.GetConfigRequest])
			d.note("switch.gone", "silent")
		}},
		{"comes again and again", func(t *testing.T) {
			for range visitOften + 1 {
				i := d.impostor(6)
				i.behave(until[ofp.MultipartRequest])
				i.nc.Close()
			}
			d.note("switch.refused", "again and again")
		}},
		{"claims the datapath id of another", func(t *testing.T) {
			first, second := d.impostor(7), d.impostor(7)
			go first.behave(never)
			d.note("switch.join", "liar-7")
			go second.behave(never)
			d.note("switch.refused", "which answers")
		}},
	} {
		t.Run(trouble.what, func(t *testing.T) {
			trouble.make(t)
			generation++
			r := plan.Rules{Services: []plan.ServiceRule{{Service: webID, Instances: uint32(generation)}}}
			if failed := good.delta(generation, r); failed != "" {
				t.Errorf("the good switch does not take generation %d: %s", generation, failed)
			}
		})
	}
}

// A table that is full refuses what does not fit. What fits is held, the rest is named, and put in once there is room.
func TestATableThatIsFullTakesTheRestWhenThereIsRoom(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of", "--", "--id=@t", "create", "Flow_Table", "flow_limit=2", "overflow_policy=refuse", "--",
		"set", "bridge", "r1", "flow_tables:16=@t")
	j := d.accept(here)
	j.orders <- snapshotBegin(1)
	j.orders <- rulesOrder(hosts("r1"), 1)
	j.orders <- snapshotCommit(1)
	if failed := j.applied(1); !strings.Contains(failed, "TABLE_FULL") {
		t.Errorf("the controller is told %q, want that a table is full", failed)
	}
	d.note("switch.error", "TABLE_FULL")
	s.Vsctl(t, "remove", "bridge", "r1", "flow_tables", "16")
	nstest.Wait(t, "the flows of r1", func() error {
		if n := len(s.flows("table=16")); n < 3 {
			return errFlows(n)
		}
		return nil
	})
}
