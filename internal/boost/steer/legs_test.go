package steer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/segment"
)

const (
	aClient, aServer = "192.0.2.1:40000", "198.51.100.7:80"
	punted           = "192.0.2.0/24 0 198.51.100.0/24 80 false true"
	answered         = "203.0.113.1/32 0 192.0.2.0/24 0 true false"
	accept, pass     = apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT, apiv1.BoostVerdict_BOOST_VERDICT_PASS
)

var rewritten = &apiv1.SteerRules{Switch: "s1", Generation: 7, Punts: []*apiv1.SteerPunt{
	{Source: "192.0.2.0/24", Destination: "198.51.100.0/24", DestinationPort: 80, Waits: true}, {Source: "203.0.113.1/32", Destination: "192.0.2.0/24", Answer: true},
}}

func legTo(agent string) *apiv1.SteerLeg {
	return &apiv1.SteerLeg{Host: aClient, Other: aServer, Agent: agent}
}

func legsOrder(generation uint64, set, unset *apiv1.SteerLeg) *apiv1.SteerOrder {
	m := &apiv1.SteerLegs{Switch: "s1", Generation: generation}
	if set != nil {
		m.Set = append(m.Set, set)
	}
	if unset != nil {
		m.Unset = append(m.Unset, unset)
	}
	return &apiv1.SteerOrder{Order: &apiv1.SteerOrder_Legs{Legs: m}}
}

// texts are flows in words.
func texts(flows []controller.Flow) (list []string) {
	for _, f := range flows {
		list = append(list, strings.ReplaceAll(fmt.Sprintf("%v -> %v", f.Match, f.Instructions), " ", ""))
	}
	return list
}

func receive[T any](t *testing.T, what string, c chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(20 * time.Second):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// A leg is two flows: what the host says goes to the agent, and what the agent says comes from the other host, once each. They go
// before all others, and by themselves once nobody uses them.
func TestALegIsTwoFlows(t *testing.T) {
	for _, m := range []*apiv1.SteerLeg{legTo("203.0.113.1:6000"), {Host: "[2001:db8::1]:40000", Other: "[2001:db8:2::7]:80", Agent: "[2001:db8:3::1]:6000"}} {
		l, err := readLeg(m)
		if err != nil {
			t.Fatal(err)
		}
		flows := l.flows()
		if len(flows) != 2 || !flows[0].First || flows[0].Priority <= priorityExempt || flows[0].Idle <= 2*time.Minute {
			t.Errorf("flows %+v", flows)
		}
		for i, want := range [][3]string{{m.Host, m.Other, m.Agent}, {m.Agent, m.Host, m.Other}} {
			for _, text := range want {
				address, _, _ := strings.Cut(strings.Trim(text[:strings.LastIndex(text, ":")], "[]"), "%")
				if got := texts(flows)[i]; !strings.Contains(got, address) || !strings.Contains(got, "reg3") {
					t.Errorf("flow %d is %s, without %s", i, got, address)
				}
			}
		}
	}
	for _, wrong := range []*apiv1.SteerLeg{{}, legTo("x"), legTo("[2001:db8::1]:6000")} {
		if _, err := readLeg(wrong); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

// A first packet waits for the controller's word, and goes the way of that: to the agent, or on to the server, with those that the
// client sends again. Where no controller is there it goes on at once.
func TestAFirstPacketGoesWhereTheControllerSays(t *testing.T) {
	n, m := start(t)
	m.say <- rewritten
	receive(t, "rules", n.flows)
	come := func(port uint16) {
		frame := slices.Clone(syn4)
		frame[34], frame[35] = byte(port>>8), byte(port)
		n.punts[punted](controller.Packet{Switch: "s1", Port: "to-client", Number: 3, Data: half(frame)})
	}
	decide := func(number uint64, v apiv1.BoostVerdict) {
		m.tell <- &apiv1.SteerOrder{Order: &apiv1.SteerOrder_First{First: &apiv1.SteerFirst{Number: number, Verdict: v}}}
	}
	come(40000)
	syn := next(t, m, (*apiv1.SteerReport).GetSyn)
	if syn.Client != aClient || syn.Server != aServer || syn.Switch != "s1" {
		t.Errorf("the controller hears %v", syn)
	}
	come(40000) // again, while it waits
	m.tell <- legsOrder(9, legTo("203.0.113.1:6000"), nil)
	if c := receive(t, "change", n.changes); len(c[0]) != 2 || len(c[1]) != 0 {
		t.Errorf("changed %v", c)
	}
	n.held("s1", 2)
	if got := next(t, m, (*apiv1.SteerReport).GetSteered); got.Generation != 7 || got.Legs != 9 {
		t.Errorf("told %v", got)
	}
	decide(syn.Number, accept)
	out := receive(t, "packet", n.sent)
	if _, err := segment.Completed(out.Data); err != nil || bytes.Equal(out.Data, half(slices.Clone(out.Data))) {
		t.Errorf("sent with half a checksum: %x, %v", out.Data, err)
	}
	if text := fmt.Sprint(out.Actions); out.In != 3 || !strings.Contains(text, "203.0.113.1") || !strings.Contains(text, "6000") {
		t.Errorf("sent %v", out)
	}
	answer := slices.Clone(syn4) // from the agent, 203.0.113.1:6000, to 192.0.2.1:40000
	copy(answer[26:], []byte{203, 0, 113, 1, 192, 0, 2, 1, 6000 >> 8, 6000 & 0xff, 40000 >> 8, 40000 & 0xff})
	for port, rewritten := range map[byte]bool{6000 & 0xff: true, 6001 & 0xff: false} {
		answer[35] = port
		n.punts[answered](controller.Packet{Switch: "s1", Number: 9, Data: half(slices.Clone(answer))})
		if out := receive(t, "answer", n.sent); strings.Contains(fmt.Sprint(out.Actions), "198.51.100.7") != rewritten {
			t.Errorf("the agent's answer from port %d is sent %v", port, out)
		}
	}
	come(40001)
	decide(next(t, m, (*apiv1.SteerReport).GetSyn).Number, pass)
	receive(t, "packet", n.sent)
	come(40001)
	out = receive(t, "packet that is sent again", n.sent)
	if strings.Contains(fmt.Sprint(out.Actions), "203.0.113.1") {
		t.Errorf("sent %v", out)
	}
	come(40002)
	decide(next(t, m, (*apiv1.SteerReport).GetSyn).Number, apiv1.BoostVerdict_BOOST_VERDICT_DROP)
	m.say <- &apiv1.SteerRules{Switch: "s1", Generation: 8} // behind it
	receive(t, "rules", n.flows)
	if len(n.sent) != 0 || len(n.punts) != 0 {
		t.Errorf("sent %d packets; it punts %v", len(n.sent), n.punts)
	}
}

// The next leg of the same hosts takes the place of the one before; what a switch has taken out by itself is told, and its other
// half goes.
func TestLegsChange(t *testing.T) {
	n, m := start(t)
	m.tell <- legsOrder(5, legTo("203.0.113.1:5999"), nil) // before the rules, which have all of them
	with := &apiv1.SteerRules{Switch: "s1", Generation: 7, Legs: []*apiv1.SteerLeg{legTo("203.0.113.1:6000")}}
	m.say <- with
	if flows := receive(t, "rules", n.flows); len(flows) != 2 {
		t.Errorf("flows %v", texts(flows))
	}
	m.tell <- legsOrder(8, legTo("203.0.113.1:6001"), nil)
	c := receive(t, "change", n.changes)
	if len(c[0]) != 2 || len(c[1]) != 1 || !strings.Contains(texts(c[1])[0], "src=203.0.113.1,") {
		t.Errorf("changed %v, %v", texts(c[0]), texts(c[1]))
	}
	n.expired("s1", c[1]) // it was on its way
	n.expired("s1", c[0][1:])
	if got := next(t, m, (*apiv1.SteerReport).GetLegsOver); len(got.Unset) != 1 || got.Unset[0].Agent != "203.0.113.1:6001" || !got.Unset[0].Silent {
		t.Errorf("told %v", got)
	}
	n.expired("s1", c[0][:1])
	if got := next(t, m, (*apiv1.SteerReport).GetLegsOver); len(got.Unset) != 1 || got.Unset[0].Silent {
		t.Errorf("told %v", got)
	}
	// The next leg of another client may have the same port of the agent's, towards the same host: it stays when the first one goes.
	first, other := legTo("203.0.113.1:7000"), legTo("203.0.113.1:7000")
	other.Other = "198.51.100.7:81"
	for _, o := range []*apiv1.SteerOrder{legsOrder(10, first, nil), legsOrder(11, other, nil), legsOrder(12, nil, first)} {
		m.tell <- o
		c = receive(t, "change", n.changes)
	}
	if len(c[1]) != 1 || !strings.Contains(texts(c[1])[0], "dst=198.51.100.7,") {
		t.Errorf("taken out %v", texts(c[1]))
	}
	m.tell <- legsOrder(9, nil, legTo("203.0.113.1:6000")) // gone long ago
	if c := receive(t, "change", n.changes); len(c[0])+len(c[1]) != 0 {
		t.Errorf("changed %v, %v", texts(c[0]), texts(c[1]))
	}
}

// syn4 is a first packet from 192.0.2.1:40000 to 198.51.100.7:80.
var syn4 = mustHex("020000000001020000000002" + "0800" + "4500002800004000400600" + "00" + "c0000201c6336407" + "9c400050" + "00000001000000005002ffff00000000")

// half has a segment's checksum be that which its sender leaves to a device.
func half(frame []byte) []byte {
	s, err := segment.Parse(frame)
	if err != nil {
		panic(err)
	}
	sum := checksum.Fold(checksum.Pseudo(s.Src, s.Dst, protoTCP, len(s.Frame)-s.L4))
	frame[s.L4+16], frame[s.L4+17] = byte(sum>>8), byte(sum)
	return frame
}

func mustHex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

// What the controller says and what a switch says come from two goroutines; the race detector looks on.
func TestChangesAndExpiriesComeTogether(t *testing.T) {
	n, m := start(t)
	m.say <- rewritten
	receive(t, "rules", n.flows)
	l, err := readLeg(legTo("203.0.113.1:6000"))
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				n.expired("s1", l.flows())
			}
		}
	}()
	for i := range 100 {
		other := legTo(fmt.Sprint("203.0.113.1:", 6000+i%2)) // each takes the other's place
		m.tell <- legsOrder(uint64(10+i), other, nil)
		receive(t, "change", n.changes)
		for len(m.hear) > 0 {
			<-m.hear
		}
	}
	close(stop)
	<-done
}
