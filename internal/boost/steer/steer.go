package steer

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/packet/lldp"
)

// announcements is how many a second a switch punts at most: agents make one a second at each port.
const announcements = 200

type session = member.Session[*apiv1.SteerReport]

// A Module drives the switches of boost's sites.
type Module struct {
	ctx context.Context // of the term in which its controller leads
	at  string          // endpoint of the controller
	log *slog.Logger
	net controller.Network

	mu      sync.Mutex
	session *session // nil: the controller is away
	known   map[string]controller.Switch
	told    map[string]*apiv1.SteerRules // by switch
	legs    map[string]map[legKey]leg    // by switch
	punted  map[string]map[string]bool   // what a switch punts, by names
	firsts  firsts

	setting sync.Mutex // held while rules are put into switches, so that the last of them are those that were told last
	set     map[string]*placed
}

// New is a module that asks the controller at the endpoint until ctx ends.
func New(ctx context.Context, endpoint string, log *slog.Logger) *Module {
	return &Module{
		ctx: ctx, at: endpoint, log: log, known: map[string]controller.Switch{}, told: map[string]*apiv1.SteerRules{},
		legs: map[string]map[legKey]leg{}, punted: map[string]map[string]bool{}, firsts: newFirsts(), set: map[string]*placed{},
	}
}

// Name implements controller.Module.
func (*Module) Name() string { return "boost" }

// KeepsRules implements controller.Keeper: connections go to their agents while a new controller learns of both.
func (*Module) KeepsRules() {}

// Start implements controller.Module.
func (m *Module) Start(n controller.Network) error {
	m.net = n
	n.HandleSwitches(m.changed)
	n.HandleHeld(m.held)
	n.HandleExpired(m.expired)
	n.Every(time.Second, m.look)
	err := n.Subscribe(controller.Subscription{
		Name: "announcements", First: true, Rate: announcements, Match: controller.Match{controller.Uint(controller.EthType, lldp.EtherType)},
	}, m.heard)
	if err != nil {
		return err
	}
	go m.stay() // ends with ctx
	return nil
}

// stay keeps a stream to the controller.
func (m *Module) stay() {
	in := &member.Member[*apiv1.SteerReport, *apiv1.SteerOrder, *apiv1.SteerJoined]{
		Who: "who drives the switches", Controllers: api.NewControllers([]string{m.at}), Epoch: (*apiv1.SteerJoined).GetEpoch,
		Open: func(ctx context.Context, client *http.Client, base string) member.Stream[*apiv1.SteerReport, *apiv1.SteerOrder] {
			return apiv1connect.NewBoostSteeringClient(client, base).Steer(ctx)
		},
		Joined: m.begin, Order: m.obey, Parted: func(*session) { m.in(nil) },
	}
	in.Stay(m.ctx, member.Stay{Log: m.log, Meanwhile: "switches go on by their rules"}, func(context.Context) (*apiv1.SteerReport, error) {
		speaks := versions.Agent()
		return &apiv1.SteerReport{Report: &apiv1.SteerReport_Join{Join: &apiv1.SteerJoin{
			Name: m.Name(), Speaks: &apiv1.Versions{From: speaks.From, To: speaks.To},
		}}}, nil
	})
}

func (m *Module) in(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session = s; s == nil {
		m.passAll()
	}
}

// begin says which switches there are.
func (m *Module) begin(_ context.Context, s *session, _ *apiv1.SteerJoined) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	for name, at := range m.known {
		m.state(name, at.Up)
	}
	return nil
}

// The caller of these has the lock.
func (m *Module) state(name string, up bool) {
	m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_State{State: &apiv1.SwitchState{Switch: name, Up: up}}})
}

func (m *Module) send(r *apiv1.SteerReport) {
	if m.session != nil {
		m.session.Send(r)
	}
}

// changed tells of a switch that came or went, and of its ports that went; and of ports that have other numbers now the rules
// are made anew.
func (m *Module) changed(s controller.Switch) {
	m.mu.Lock()
	was := m.known[s.Name]
	m.known[s.Name] = s
	if s.Up != was.Up {
		m.state(s.Name, s.Up)
	}
	up := upPorts(s)
	for _, p := range was.Ports {
		if s.Up && p.Up && !up[p.Name] {
			m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_PortDown{PortDown: &apiv1.PortDown{Switch: s.Name, Port: p.Name}}})
		}
	}
	m.mu.Unlock()
	if s.Up {
		m.place(s.Name)
	}
}

func upPorts(s controller.Switch) map[string]bool {
	up := map[string]bool{}
	for _, p := range s.Ports {
		up[p.Name] = p.Up
	}
	return up
}

// heard takes an announcement. Whether it is an agent's the controller says, who knows the agents' keys.
func (m *Module) heard(p controller.Packet) {
	a, err := announce.Parse(p.Data)
	if err != nil {
		return // LLDP of somebody else
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.send(&apiv1.SteerReport{Report: &apiv1.SteerReport_Sighting{Sighting: &apiv1.Sighting{
		Switch: p.Switch, Port: p.Port, Agent: a.Agent, AgentPort: a.Port, Mac: a.MAC[:], Made: a.Made, Proof: a.Proof[:],
	}}})
}

// obey takes what the rules of a switch are to be, and what becomes of first packets.
func (m *Module) obey(o *apiv1.SteerOrder) error {
	switch o := o.Order.(type) {
	case *apiv1.SteerOrder_Rules:
		m.obeyRules(o.Rules)
	case *apiv1.SteerOrder_Legs:
		m.change(o.Legs)
	case *apiv1.SteerOrder_First:
		m.decided(o.First)
	}
	return nil
}

func (m *Module) obeyRules(rules *apiv1.SteerRules) {
	legs := map[legKey]leg{}
	for _, told := range rules.Legs {
		l, err := readLeg(told)
		if err != nil {
			m.refused(rules.Switch, err)
			continue
		}
		legs[l.key()] = l
	}
	m.mu.Lock()
	m.told[rules.Switch], m.legs[rules.Switch] = rules, legs
	m.mu.Unlock()
	m.punt(rules) // first: a switch that has the rules of place punts as well
	m.place(rules.Switch)
}

func (m *Module) refused(name string, err error) {
	m.log.Error("rules of boost for a switch", "switch", name, "error", err)
	m.net.Report(name, "the switch does not get its rules: "+err.Error())
}
