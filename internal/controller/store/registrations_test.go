package store

import (
	"encoding/json"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

func TestAPageOfRegistrationsThatCannotBeReadIsNamedAndStopsNobody(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	defer s.Close()
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	good := Registrations{Host: "s1", Page: 1, BootID: "b", All: []Registration{{
		Service: sid.ServiceID{SS: 1, Suffix: 7}, Proto: sid.TCP, Port: 80, Readiness: plan.Readiness{Ready: true, Resume: true}, User: "web", Since: 9,
	}}}
	bad := map[string]string{
		"registrations/s2/1":     `{"form":2,"host":"s2","page":1}`,
		"registrations/s3/1":     `{"form":1,"host":"s3","page":1,"all":7}`,
		"registrations/s4/3":     `"?"`,
		"registrations/s5/1":     `{"form":1,"host":"s6","page":1}`,
		"registrations/s7":       `{}`,
		"registrations/s8/1/2/3": `{}`,
	}
	changes := []Change{PutRegistrations(good), PutRegistrationsTerm(1)}
	for key, value := range bad {
		changes = append(changes, Change{key, json.RawMessage(value)})
	}
	if err := s.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	state, err := s.Begin(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Registrations) != 1 || state.Registrations[0].Host != "s1" || state.Registrations[0].All[0].Triple() != good.All[0].Triple() ||
		state.Registrations[0].All[0].Readiness != good.All[0].Readiness || state.RegistrationsTerm != 1 {
		t.Errorf("read %+v of term %d, want %+v of 1", state.Registrations, state.RegistrationsTerm, good)
	}
	if len(state.Unread) != len(bad) {
		t.Errorf("unread are %+v, want %d", state.Unread, len(bad))
	}
	for _, u := range state.Unread {
		if bad[u.Key] == "" || u.Why == "" || u.Host != "" && !strings.HasPrefix(u.Key, "registrations/"+u.Host+"/") {
			t.Errorf("unread is %+v", u)
		}
		if want := map[string]int{"s2": 1, "s4": 3}[u.Host]; want != 0 && u.Page != want {
			t.Errorf("%s is page %d, want %d", u.Key, u.Page, want)
		}
	}
}
