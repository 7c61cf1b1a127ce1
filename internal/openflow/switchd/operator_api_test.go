package switchd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/sid"
)

// answering is a connection with a switch that has flows and counters.
func answering(t *testing.T, flows func() ofp.Flows) *ofconn.Conn {
	t.Helper()
	ours, its := net.Pipe()
	done := make(chan struct{})
	go func() { // ends when the connection does
		defer close(done)
		defer its.Close()
		in := bufio.NewReader(its)
		for {
			m, err := readMessage(in)
			if err != nil {
				return
			}
			var reply ofp.Body
			switch b := m.Body.(type) {
			case ofp.Hello:
				reply = ofp.Hello{Versions: ofp.Versions(ofp.V15)}
			case ofp.FeaturesRequest:
				reply = ofp.FeaturesReply{DatapathID: 1}
			case ofp.MultipartRequest:
				reply = ofp.MultipartReply{Part: ofp.PortsStats{{Port: 1, RxPackets: 7, TxBytes: ^uint64(0)}, {Port: 99}}}
				if q, is := b.Ask.(ofp.AskFlows); is {
					reply = ofp.MultipartReply{Part: slices.DeleteFunc(flows(), func(f ofp.Flow) bool { return f.Cookie&q.CookieMask != q.Cookie })}
				}
			default:
				continue
			}
			b, err := ofp.Message{Version: ofp.V15, XID: m.XID, Body: reply}.Append(nil)
			if err != nil {
				t.Errorf("%+v: %v", reply, err)
			}
			its.Write(b)
		}
	}()
	c, err := ofconn.New(t.Context(), ours, ofconn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-done })
	return c
}

func readMessage(in io.Reader) (m ofp.Message, err error) {
	b := make([]byte, ofp.HeaderLen)
	if _, err := io.ReadFull(in, b); err != nil {
		return m, err
	}
	h, err := ofp.ParseHeader(b)
	if err != nil {
		return m, err
	}
	b = append(b, make([]byte, h.Len-len(b))...)
	if _, err := io.ReadFull(in, b[ofp.HeaderLen:]); err != nil {
		return m, err
	}
	return ofp.Parse(b)
}

// A memory keeps flows as the store does.
type memory struct {
	mu    sync.Mutex
	flows map[uint32]keptFlow
	full  error
}

func (k *memory) keep(_ context.Context, f keptFlow, gone bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full != nil {
		return k.full
	}
	k.flows[f.number] = f
	if gone {
		delete(k.flows, f.number)
	}
	return nil
}

func (k *memory) kept(context.Context) (list []keptFlow, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return byKey(k.flows), k.full
}

type calledSo struct{}

func (calledSo) hostAt(string) string         { return "h1" }
func (calledSo) serviceName(id string) string { return "web" }

// An office is a answerer that is served, with a fake plane behind.
type office struct {
	*fakePlane
	modules   *modules
	operators *operators
	answerer  *answerer
	memory    *memory
	client    apiv1connect.SwitchesClient
	flows     []ofp.Flow // others than operators', in s1
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{fakePlane: newFakePlane("s1"), memory: &memory{flows: map[uint32]keptFlow{}}}
	o.modules = newModules(o.fakePlane, fakeMind{o.fakePlane}, o.fakePlane, nil)
	o.begin(t)
	o.lend = map[string]*ofconn.Conn{"s1": answering(t, o.held)}
	o.state = []condition{
		{Switch: o.there["s1"], Since: time.Now(), Connects: 2, PacketIns: map[owner]uint64{ownScaffold: 3, 16: 4}, Flows: 9},
		{Switch: controller.Switch{Name: "s2", Datapath: 2}, Trouble: "it refused"},
	}
	o.split = map[string][]share{"s1": {{Of: sid.Triple{Proto: 6, Port: 80}, Targets: []shareTarget{{Weight: 1, Share: 0.25}, {Weight: 3, Share: 0.75}}}}}
	front := new(OperatorAPI)
	mount := front.Mount()
	server := httptest.NewServer(mount.Handler)
	t.Cleanup(server.Close)
	o.client = apiv1connect.NewSwitchesClient(http.DefaultClient, server.URL)
	if _, err := o.client.ListSwitches(t.Context(), connect.NewRequest(&apiv1.ListSwitchesRequest{})); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("before it is open: %v", err)
	}
	o.answerer = &answerer{plane: o.fakePlane, modules: o.modules, directory: calledSo{}, operators: o.operators}
	front.open.Store(o.answerer)
	return o
}

// begin is a start of the controller.
func (o *office) begin(t *testing.T) {
	t.Helper()
	o.modules.flows = newFlowTable(o.fakePlane)
	o.operators = newOperators(o.memory, o.modules.flows)
	o.modules.all = nil
	for of, m := range map[owner]controller.Module{ownOperator: o.operators, 16: still} {
		if err := o.modules.add(of, m); err != nil {
			t.Fatal(err)
		}
	}
}

// held are what s1 would answer: what it is told, and what others put in.
func (o *office) held() ofp.Flows {
	ours, _ := oftables.Cookies()
	list := slices.Clone(o.flows)
	for _, of := range o.owners("s1") {
		for _, f := range o.at("s1", of) {
			list = append(list, ofp.Flow{Priority: f.Priority, Cookie: ours | uint64(of)<<32 | uint64(f.ID), Match: f.Match, Instructions: f.Instructions})
		}
	}
	return list
}

func (o *office) add(t *testing.T, m *apiv1.AddSwitchFlowRequest) (*apiv1.SwitchFlow, error) {
	t.Helper()
	f, err := o.client.AddSwitchFlow(t.Context(), connect.NewRequest(m))
	if err != nil {
		return nil, err
	}
	return f.Msg, nil
}

func TestOperatorsSeeSwitchesAsTheyAre(t *testing.T) {
	o := newOffice(t)
	all, err := o.client.ListSwitches(t.Context(), connect.NewRequest(&apiv1.ListSwitchesRequest{}))
	if err != nil || len(all.Msg.Switches) != 2 || all.Msg.Switches[0].State != "up" || all.Msg.Switches[1].State != "gone" || all.Msg.Switches[1].Trouble != "it refused" {
		t.Errorf("ls: %v, %v", all, err)
	}
	one, err := o.client.GetSwitch(t.Context(), connect.NewRequest(&apiv1.GetSwitchRequest{Name: "s1"}))
	if err != nil {
		t.Fatal(err)
	}
	s := one.Msg
	if len(s.Ports) != 1 || s.Ports[0].Name != "to-s1" || s.Ports[0].RxPackets != 7 || s.Ports[0].TxBytes != 0 || s.Connects != 2 {
		t.Errorf("show: %v", s)
	}
	if s.PacketIns["scaffold"] != 3 || s.PacketIns["module still"] != 4 {
		t.Errorf("punted for %v", s.PacketIns)
	}
	if len(s.Shares) != 1 || s.Shares[0].Service != "web" || s.Shares[0].Proto != "tcp" || s.Shares[0].Instances[1].Share != 0.75 || s.Shares[0].Instances[0].Host != "h1" {
		t.Errorf("shares: %v", s.Shares)
	}
	if away, err := o.client.GetSwitch(t.Context(), connect.NewRequest(&apiv1.GetSwitchRequest{Name: "s2"})); err != nil || away.Msg.State != "gone" {
		t.Errorf("one that is away: %v, %v", away, err)
	}
	if _, err := o.client.GetSwitch(t.Context(), connect.NewRequest(&apiv1.GetSwitchRequest{Name: "s9"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("one that there is not: %v", err)
	}
}

func TestOperatorsFlowsAreKept(t *testing.T) {
	o := newOffice(t)
	if _, err := o.add(t, &apiv1.AddSwitchFlowRequest{Name: "s1", Actions: "drop"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("before what is kept was read: %v", err)
	}
	o.operators.load(t.Context())
	if _, err := o.add(t, &apiv1.AddSwitchFlowRequest{Name: "s1", Actions: "drop"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("before the switch came: %v", err)
	}
	o.operators.changed(o.there["s1"])
	for i, m := range []*apiv1.AddSwitchFlowRequest{
		{Name: "s1", Match: "any", Actions: "NORMAL"}, {Name: "s1", Match: "in_port=to-s1", Actions: "drop", Priority: 5},
		{Name: "s1", Match: "ipv6_dst=fd00::/8,tcp_dst=25", Actions: "output:to-s1", Priority: 8191, First: true},
	} {
		if f, err := o.add(t, m); err != nil || f.Number != uint32(i+1) || f.Trouble != "" {
			t.Fatalf("%v: %v, %v", m, f, err)
		}
	}
	// The controller and the switch come again, and the ports are others.
	o.begin(t)
	o.answerer.operators = o.operators
	o.operators.load(t.Context())
	if got := o.at("s1", ownOperator); len(got) != 1 {
		t.Errorf("before the switch came it is to have %+v, want what names no port", got)
	}
	again := o.there["s1"]
	again.Ports = []controller.Port{{Name: "to-s1", Number: 42}}
	o.operators.changed(again)
	got := o.at("s1", ownOperator)
	if len(got) != 3 || got[1].Match.Uint(ofp.InPort) != 42 || got[2].ID != 3 || !got[2].First || got[2].Priority != 8191 {
		t.Errorf("s1 is to have %+v", got)
	}
	again.Ports = nil
	o.operators.changed(again)
	o.flows = []ofp.Flow{{Table: 0, Priority: 1, Cookie: 77, Stats: ofp.FlowCounts{Packets: 5, Duration: ofp.Duration{Sec: 2}}}}
	list, err := o.client.ListSwitchFlows(t.Context(), connect.NewRequest(&apiv1.ListSwitchFlowsRequest{Name: "s1"}))
	if err != nil || len(list.Msg.Flows) != 4 {
		t.Fatalf("flow ls: %v, %v", list, err)
	}
	for _, f := range list.Msg.Flows {
		switch {
		case f.Owner == "other" && (f.Packets != 5 || f.AgeMs != 2000 || f.Match != "any" || f.Actions != "drop"),
			f.Owner == "operator" && (f.Number == 1) != (f.Trouble == ""):
			t.Errorf("flow ls has %v", f)
		}
	}
	if _, err := o.client.RemoveSwitchFlow(t.Context(), connect.NewRequest(&apiv1.RemoveSwitchFlowRequest{Name: "s1", Number: 1})); err != nil || len(o.at("s1", ownOperator)) != 0 || len(o.memory.flows) != 2 {
		t.Errorf("rm: %v, left %v", err, o.memory.flows)
	}
	if _, err := o.client.RemoveSwitchFlow(t.Context(), connect.NewRequest(&apiv1.RemoveSwitchFlowRequest{Name: "s1", Number: 1})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("rm twice: %v", err)
	}
}

func TestBadFlowsOfOperatorsChangeNothing(t *testing.T) {
	o := newOffice(t)
	o.operators.load(t.Context())
	o.operators.changed(o.there["s1"])
	if err := o.modules.flows.set(16, "s1", []ownFlow{{Flow: controller.Flow{Priority: 9, Match: lldp}}}); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]*apiv1.AddSwitchFlowRequest{
		"priority 8192: at most 8191": {Match: "any", Actions: "drop", Priority: 8192},
		"no port":                     {Match: "in_port=eth9", Actions: "drop"},
		"where a module of it":        {Match: "any", Actions: "controller"},
		"still has a rule of this":    {Match: "eth_type=0x88cc", Actions: "drop", Priority: 9},
		"is no field":                 {Match: "x=1", Actions: "drop"},
		"want for instance":           {},
	} {
		m.Name = "s1"
		if f, err := o.add(t, m); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v; want %q", m, f, err, want)
		}
	}
	o.memory.full = errors.New("no room")
	if f, err := o.add(t, &apiv1.AddSwitchFlowRequest{Name: "s1", Match: "any", Actions: "drop"}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("what cannot be saved: %v, %v", f, err)
	}
	if got := o.at("s1", ownOperator); got != nil || len(o.memory.flows) != 0 {
		t.Errorf("s1 is to have %+v, kept are %v", got, o.memory.flows)
	}
}

func TestSwitchesAndModulesAreMeasured(t *testing.T) {
	o := newOffice(t)
	m := obs.NewMetrics("controld").Part("switchd")
	o.answerer.export(m)
	got := httptest.NewRecorder()
	m.Handler().ServeHTTP(got, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`scaffold_switchd_switch_up{switch="s1"} 1`, `scaffold_switchd_switch_up{switch="s2"} 0`,
		`scaffold_switchd_switch_packet_ins_total{owner="module still",switch="s1"} 4`,
		`scaffold_switchd_switch_entries{kind="flow",switch="s1"} 9`,
		`scaffold_switchd_port_packets_total{direction="rx",port="to-s1",switch="s1"} 7`,
		`scaffold_switchd_port_bytes_total{direction="tx",port="to-s1",switch="s1"} 0`,
		`scaffold_switchd_module_stopped{module="still"} 0`,
	} {
		if !strings.Contains(got.Body.String(), want+"\n") {
			t.Errorf("no line %s in\n%.9999s", want, got.Body)
		}
	}
}
