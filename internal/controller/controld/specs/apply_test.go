package specs

import (
	"slices"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// A fake is a catalogue without a network: what it is told to do it does at once.
type fake struct {
	*names.Table
	t         *testing.T
	next      sid.Suffix
	overrides map[string]store.Override // by host, of whatever service
	instances int
}

func (f *fake) New(name, _ string, policy names.Policy, access names.Access) (names.Record, error) {
	f.next++
	return f.Check(names.Record{Name: name, ID: sid.ServiceID{SS: 1, Suffix: f.next}, Policy: policy, Access: access, Version: 1})
}
func (f *fake) Holdable(names.Policy) error                             { return nil }
func (f *fake) Override(_ sid.ServiceID, host string) store.Override    { return f.overrides[host] }
func (f *fake) Instances(sid.ServiceID) int                             { return f.instances }
func (f *fake) Nameless([]string, []string, func(string) bool) []string { return nil }
func (f *fake) Address(sid.ServiceID) string                            { return "fd5e::1" }
func (f *fake) LastOrder(string) string                                 { return "nobody" }
func (f *fake) Removal(r names.Record) []store.Change {
	return []store.Change{store.DeleteService(r.ID)}
}
func (f *fake) Remove(r names.Record)        { f.Table.Remove(r.Name) }
func (f *fake) SetOverride(o store.Override) { f.overrides[o.Host] = o }

func (f *fake) Add(r names.Record) {
	if err := f.Table.Add(r); err != nil {
		f.t.Error(err)
	}
}

func (f *fake) Set(r names.Record, _ bool) {
	if err := f.Replace(r); err != nil {
		f.t.Error(err)
	}
}

func empty(t *testing.T) *fake {
	return &fake{Table: names.NewTable("svc"), t: t, next: 1 << 16, overrides: map[string]store.Override{}}
}

// apply makes services what files say, and returns what that came to: "create web", of each.
func (f *fake) apply(req *apiv1.ApplyRequest) (did []string, answer *apiv1.ApplyResponse) {
	f.t.Helper()
	answer = &apiv1.ApplyResponse{}
	for _, s := range Make(f, "svc", req, answer) {
		s.Effect()
		if len(s.Records) == 0 || len(s.Says) == 0 {
			f.t.Errorf("%s is done and %d records and %d events tell of it", s.Change.Name, len(s.Records), len(s.Says))
		}
		did = append(did, s.Change.Action+" "+s.Change.Name)
	}
	return did, answer
}

func of(owner string, prune bool, services ...*apiv1.ServiceSpec) *apiv1.ApplyRequest {
	return &apiv1.ApplyRequest{Owner: owner, Prune: prune, Services: services}
}

func number(n uint32) *uint32 { return &n }

func TestWhatFilesSayIsDoneOnce(t *testing.T) {
	f := empty(t)
	web := func() *apiv1.ServiceSpec {
		return &apiv1.ServiceSpec{Name: "web", Weight: number(30), Weights: map[string]uint32{"s1": 5}}
	}
	if did, _ := f.apply(of("shop", true, web())); !slices.Equal(did, []string{"create web"}) {
		t.Fatalf("done: %v", did)
	}
	if did, answer := f.apply(of("shop", true, web())); len(did) > 0 || answer.Changes[0].Action != "none" {
		t.Errorf("done again: %v", did)
	}
	r, _ := f.Named("web")
	if s := Of(r, map[string]uint32{"s1": f.overrides["s1"].Weight}); s.GetWeight() != 30 || s.Weights["s1"] != 5 || s.Drain != nil {
		t.Errorf("as a file it is %v", s)
	}
}

func TestWhatFilesNoLongerSayIsTakenBackAndTheRestStays(t *testing.T) {
	f := empty(t)
	f.apply(of("shop", true, &apiv1.ServiceSpec{Name: "web", Weight: number(30)}))
	r, _ := f.Named("web")
	byHand, err := f.With("web", names.Policy{Weight: r.Policy.Weight, DSCP: 10}, r.Access, r.Applied)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(byHand, true)
	f.apply(of("shop", true, &apiv1.ServiceSpec{Name: "web"}))
	if r, _ = f.Named("web"); r.Policy.Weight != 0 || r.Policy.DSCP != 10 {
		t.Errorf("the policy is %+v: want the weight taken back, and what was set by hand left", r.Policy)
	}
	if did, _ := f.apply(of("shop", true)); !slices.Equal(did, []string{"remove web"}) {
		t.Errorf("done: %v", did)
	}
}

func TestNothingIsDoneOfAnApplyWithAMistake(t *testing.T) {
	f := empty(t)
	_, answer := f.apply(of("shop", false, &apiv1.ServiceSpec{Name: "web"}))
	if len(answer.Problems) > 0 {
		t.Fatal(answer.Problems)
	}
	f.instances = 1
	for what, c := range map[string]struct {
		req  *apiv1.ApplyRequest
		want string
	}{
		"a name twice":         {of("shop", false, &apiv1.ServiceSpec{Name: "a"}, &apiv1.ServiceSpec{Name: "a"}), "named twice"},
		"a weight too large":   {of("shop", false, &apiv1.ServiceSpec{Name: "a", Weights: map[string]uint32{"s1": 1 << 30}}), "weight"},
		"another owner's":      {of("bank", false, &apiv1.ServiceSpec{Name: "web", Weight: number(3)}), "belongs to the files of shop"},
		"one that is in use":   {of("shop", true), "still has 1 instance"},
		"other than was shown": {&apiv1.ApplyRequest{Owner: "shop", Planned: true, Services: []*apiv1.ServiceSpec{{Name: "new"}}}, "is not what the plan says"},
	} {
		answer := &apiv1.ApplyResponse{}
		Make(f, "svc", c.req, answer)
		if len(answer.Problems) != 1 || !strings.Contains(answer.Problems[0].Text, c.want) {
			t.Errorf("%s: %v, want one of %q", what, answer.Problems, c.want)
		}
	}
}

func TestAChangeIsToldInOneLine(t *testing.T) {
	before := names.Record{Policy: names.Policy{Weight: 30}}
	after := names.Record{Access: names.Access{Allow: []string{"c1"}}}
	if got := Told(Between(before, after)); got != "weight from 30 to 100; allow from everybody to c1" {
		t.Errorf("it is told as %q", got)
	}
}
