package controld

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/core/names"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

func (c *controller) apply(req *apiv1.ApplyRequest) *apiv1.ApplyResponse {
	c.t.Helper()
	resp, err := c.admin.Apply(c.t.Context(), connect.NewRequest(req))
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.Msg
}

func (c *controller) export() []*apiv1.ServiceSpec {
	c.t.Helper()
	resp, err := c.admin.Export(c.t.Context(), connect.NewRequest(&apiv1.ExportRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.Msg.Services
}

// actions are an answer in one line.
func actions(r *apiv1.ApplyResponse) string {
	var list []string
	for _, c := range r.Changes {
		line := c.Action + " " + c.Name
		for _, f := range c.Fields {
			line += fmt.Sprintf(" %s:%s>%s", f.Field, f.From, f.To)
		}
		list = append(list, line)
	}
	for _, p := range r.Problems {
		list = append(list, "wrong "+p.Service+" "+p.Field)
	}
	return strings.Join(list, "; ")
}

func spec(name string, more ...func(*apiv1.ServiceSpec)) *apiv1.ServiceSpec {
	s := &apiv1.ServiceSpec{Name: name}
	for _, m := range more {
		m(s)
	}
	return s
}

func ready(text string) func(*apiv1.ServiceSpec) {
	return func(s *apiv1.ServiceSpec) { s.Ready = &text }
}

func weighed(w map[string]uint32) func(*apiv1.ServiceSpec) {
	return func(s *apiv1.ServiceSpec) { s.Weights = w }
}

func allow(list ...string) func(*apiv1.ServiceSpec) {
	return func(s *apiv1.ServiceSpec) { s.Allow = &apiv1.StringList{Items: list} }
}

func servers(list ...string) func(*apiv1.ServiceSpec) {
	return func(s *apiv1.ServiceSpec) { s.Servers = &apiv1.StringList{Items: list} }
}

func files(services ...*apiv1.ServiceSpec) *apiv1.ApplyRequest {
	return &apiv1.ApplyRequest{Services: services}
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	req := files(spec("web", ready("tcp"), weighed(map[string]uint32{"s1": 3}), allow("c1", "service:front")), spec("front"))
	want := "create front; create web ready:>tcp allow:>c1, service:front weights.s1:>3"
	dry := proto.CloneOf(req)
	dry.DryRun = true
	if got := c.apply(dry); actions(got) != want || got.Done != 0 || len(c.export()) != 0 {
		t.Errorf("dry run: %s, %d done, %d services there", actions(got), got.Done, len(c.export()))
	}
	got := c.apply(req)
	if actions(got) != want || got.Done != 2 {
		t.Errorf("applied: %s, %d done", actions(got), got.Done)
	}
	if w := got.Warnings; len(w) != 2 || !strings.Contains(w[0], "c1") || !strings.Contains(w[1], "s1") {
		t.Errorf("warnings %q, want those of the hosts that nobody knows", w)
	}
	if got := c.apply(req); actions(got) != "none front; none web" || got.Done != 0 {
		t.Errorf("again: %s, %d done", actions(got), got.Done)
	}
}

func TestApplyTakesBackWhatItSetAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.apply(files(spec("web", ready("tcp"), weighed(map[string]uint32{"s1": 3, "s2": 4}))))
	policy := &apiv1.Policy{Ready: "tcp", Dscp: 46} // somebody's hand
	if _, err := c.admin.UpdatePolicy(t.Context(), connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "web", Policy: policy, Replace: true})); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		req  *apiv1.ApplyRequest
		want string
	}{
		{files(spec("web", ready("tcp"), weighed(map[string]uint32{"s1": 3, "s2": 4}))), "none web"},
		{files(spec("web", weighed(map[string]uint32{"s1": 5}))), "update web ready:tcp> weights.s1:3>5 weights.s2:4>"},
		{files(spec("web")), "update web weights.s1:5>"},
		{files(spec("web", func(s *apiv1.ServiceSpec) { s.Dscp = proto.Uint32(0) })), "update web dscp:46>"},
		{files(spec("web")), "none web"},
	} {
		if got := actions(c.apply(step.req)); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	c.apply(files(spec("web", ready("tcp"))))
	if _, err := c.admin.UpdatePolicy(t.Context(), connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "web", Policy: &apiv1.Policy{Ready: "http:/x"}, Replace: true})); err != nil {
		t.Fatal(err)
	}
	if got := c.apply(&apiv1.ApplyRequest{Services: []*apiv1.ServiceSpec{spec("web", ready("tcp"))}, DryRun: true}); got.Changes[0].Fields[0].Why != "changed by hand since the last apply" {
		t.Errorf("what was changed by hand is not said to be: %v", got)
	}
	if got := actions(c.apply(files(spec("web")))); got != "none web" {
		t.Errorf("what was changed by hand and is not named any more: %s, want it left alone", got)
	}
}

func TestPruneRemovesWhatItsOwnersFilesMade(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.create("byhand")
	c.apply(files(spec("web"), spec("db"), spec("byhand", ready("tcp"))))
	other := files(spec("theirs"))
	other.Owner = "others"
	c.apply(other)
	if got := actions(c.apply(files(spec("web"), spec("theirs")))); got != "none web; wrong theirs " {
		t.Errorf("a service of others: %s", got)
	}
	last := files(spec("web"))
	last.Prune = true
	if got := actions(c.apply(last)); got != "release byhand; remove db; none web" {
		t.Errorf("prune: %s", got)
	}
	var left []string
	for _, s := range c.export() {
		left = append(left, s.Name)
	}
	if !slices.Equal(left, []string{"byhand", "theirs", "web"}) {
		t.Errorf("left are %v", left)
	}
	if got := actions(c.apply(last)); got != "none web" {
		t.Errorf("prune again: %s", got)
	}
}

func TestAllMistakesOfAnApplyAreToldAndNothingIsDone(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	bad, long := "x", uint32(100000)
	got := c.apply(files(
		spec("good"),
		spec("web", ready("nonsense"), weighed(map[string]uint32{"s1": 70000}), allow("a b"), servers()),
		spec("UP..down"), spec("db", func(s *apiv1.ServiceSpec) { s.Failover = &bad; s.PatienceMs = &long }),
		spec("good"), spec("keyed", func(s *apiv1.ServiceSpec) { s.Key = &bad }),
		spec("open", func(s *apiv1.ServiceSpec) { s.Failover = proto.String("continue") })))
	for _, want := range []string{"web ready", "web weights.s1", "web allow", "web servers", "UP..down ", "db failover", "db patience", "good ", "keyed key", "open failover"} {
		if !strings.Contains(actions(got)+";", "wrong "+want+";") {
			t.Errorf("nothing is said of %q: %s", want, actions(got))
		}
	}
	if len(got.Problems) != 10 || got.Done != 0 || len(c.export()) != 0 {
		t.Errorf("%d problems, %d done, %d services", len(got.Problems), got.Done, len(c.export()))
	}
}

// boostFiles are files of a service, two sites and an entry between them.
func boostFiles(server string) *apiv1.ApplyRequest {
	return &apiv1.ApplyRequest{
		Services: []*apiv1.ServiceSpec{spec("web")},
		BoostSites: []*apiv1.BoostSiteSpec{
			{Name: "east", Prefixes: []string{"192.0.2.0/24"}, Agents: &apiv1.StringList{Items: []string{"e1"}}},
			{Name: "west", Prefixes: []string{"198.51.100.0/24"}},
		},
		BoostEntries: []*apiv1.BoostEntrySpec{{Name: "files", Client: "192.0.2.0/24", Server: server}},
	}
}

func TestServicesAndBoostAreAppliedTogetherOrNotAtAll(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	d := new(disk)
	c := onDisk(t, d)
	if got := c.apply(boostFiles("203.0.113.7")); actions(got) != "create web; create east prefixes:>192.0.2.0/24 agents:>e1; create west prefixes:>198.51.100.0/24; "+
		"create files client:>192.0.2.0/24 server:>203.0.113.7/32; wrong files server" || len(c.export()) != 0 {
		t.Errorf("with a mistake in boost: %s, %d services", actions(got), len(c.export()))
	}
	d.full.Store(true)
	if _, err := c.admin.Apply(t.Context(), connect.NewRequest(boostFiles("198.51.100.7"))); connect.CodeOf(err) != connect.CodeResourceExhausted || len(c.export()) != 0 {
		t.Errorf("a disk that is full: %v, %d services", err, len(c.export()))
	}
	d.full.Store(false)
	if got := c.apply(boostFiles("198.51.100.7")); got.Done != 4 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "no agent named e1 has joined yet") {
		t.Errorf("%s, %d done, notes %q", actions(got), got.Done, got.Warnings)
	}
	resp, err := c.admin.Export(t.Context(), connect.NewRequest(&apiv1.ExportRequest{}))
	if err != nil || len(resp.Msg.BoostSites) != 2 || len(resp.Msg.BoostEntries) != 1 || len(resp.Msg.Services) != 1 {
		t.Fatalf("exported: %v, %v", resp, err)
	}
	if got := actions(c.apply(boostFiles("198.51.100.7"))); got != "none web; none east; none west; none files" {
		t.Errorf("again: %s", got)
	}
	if got := actions(c.apply(&apiv1.ApplyRequest{Prune: true, KnowsBoost: true})); got != "remove web; remove east; remove west; remove files" {
		t.Errorf("prune: %s", got)
	}
}

// drawSpec is any service that may be.
func drawSpec(t *rapid.T, name string) *apiv1.ServiceSpec {
	s := &apiv1.ServiceSpec{Name: name}
	text := func(field string, of ...string) *string {
		if v := rapid.SampledFrom(append(of, "-")).Draw(t, field); v != "-" {
			return &v
		}
		return nil
	}
	number := func(field string, most uint32) *uint32 {
		if rapid.Bool().Draw(t, field+"?") {
			v := rapid.Uint32Range(0, most).Draw(t, field)
			return &v
		}
		return nil
	}
	list := func(field string, of ...string) *apiv1.StringList {
		if items := rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 3, rapid.ID).Draw(t, field); len(items) > 0 {
			return &apiv1.StringList{Items: items}
		}
		return nil
	}
	s.Failover, s.Drain = text("failover", "reset", ""), text("drain", "wait", "shed")
	s.Ready, s.Datagrams = text("ready", "", "tcp", "http:/x", "exec:true"), text("datagrams", "bound", "unbound", "unset")
	s.Weight, s.Dscp, s.PatienceMs = number("weight", 65535), number("dscp", 63), number("patience", 60000)
	s.Servers, s.Allow = list("servers", "s1", "s2", "s3"), list("allow", "c1", "service:a", "fd5d:0:1:100::/56")
	s.Weights = rapid.MapOfN(rapid.SampledFrom([]string{"s1", "s2", "s3"}), rapid.Uint32Range(0, 65535), 0, 2).Draw(t, "weights")
	if rapid.IntRange(0, 4).Draw(t, "key?") == 0 {
		key := names.FormatKey([]byte(fmt.Sprintf("%-32s", name)))
		s.Key = &key
	}
	return s
}

func TestWhatIsExportedIsWhatIsThere(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	rapid.Check(t, func(t *rapid.T) {
		req := &apiv1.ApplyRequest{Prune: true, Force: true}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names") {
			s := drawSpec(t, name)
			if have := c.named(name); have != nil { // its key is for life
				s.Key = have.Key
			}
			req.Services = append(req.Services, s)
		}
		if got := c.apply(req); len(got.Problems) > 0 {
			t.Fatalf("%v", got.Problems)
		}
		if got := c.apply(req); got.Done != 0 {
			t.Fatalf("again: %s", actions(got))
		}
		exported := c.export()
		dry := &apiv1.ApplyRequest{Services: exported, Prune: true, DryRun: true}
		for _, change := range c.apply(dry).Changes {
			if change.Action != "none" || len(change.Fields) > 0 {
				t.Fatalf("what was exported differs: %v", change)
			}
		}
	})
}

func (c *controller) named(name string) *apiv1.ServiceSpec {
	for _, s := range c.export() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func TestAServiceWithAKeyIsCalledAsItsKeySays(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	key := names.FormatKey(make([]byte, 32))
	c.apply(files(spec("web", func(s *apiv1.ServiceSpec) { s.Key = &key })))
	id, _ := sid.ParseServiceID(c.service("web").Sid)
	if id.Suffix != sid.Certified(make([]byte, 32)) {
		t.Errorf("serviceID %v", id)
	}
	other := names.FormatKey(append(make([]byte, 31), 1))
	if got := actions(c.apply(files(spec("web", func(s *apiv1.ServiceSpec) { s.Key = &other })))); got != "wrong web key" {
		t.Errorf("another key: %s", got)
	}
	_, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "db", Sid: "00000001-00c0ffee00c0ffee", Access: &apiv1.Access{Key: key}}))
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a serviceID that is not its key's: %v", err)
	}
}

// TestAnApplyOfManyServicesIsDoneWholeOrNotAtAll: more than one write of the store holds.
func TestAnApplyOfManyServicesIsDoneWholeOrNotAtAll(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	d := new(disk)
	c := onDisk(t, d)
	req := &apiv1.ApplyRequest{}
	for i := range 3*applyBatch - 50 {
		req.Services = append(req.Services, spec(fmt.Sprintf("s%03d", i)))
	}
	d.full.Store(true)
	if _, err := c.admin.Apply(t.Context(), connect.NewRequest(req)); connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "nothing was changed") || len(c.export()) != 0 {
		t.Errorf("a disk that is full: %v, %d services", err, len(c.export()))
	}
	d.full.Store(false)
	before := d.commits.Load()
	if got := c.apply(req); int(got.Done) != len(req.Services) || got.Failed != "" || len(c.export()) != len(req.Services) || d.commits.Load() < before+1 {
		t.Errorf("with room: %d done, %q, %d there", got.Done, got.Failed, len(c.export()))
	}
}
