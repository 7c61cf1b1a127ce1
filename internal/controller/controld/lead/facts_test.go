package lead

import (
	"fmt"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
)

// TestAPartOfTheStateThatLagsIsTold: by the others' word, as of those that answer.
func TestAPartOfTheStateThatLagsIsTold(t *testing.T) {
	t.Parallel()
	own := health.Store{At: "c2"}
	got := parts(own, 90_000, map[string]*apiv1.Disk{"c1": {Applied: 100_000}, "c3": {Applied: 99_999, Damaged: "db"}, "c4": {}})
	text := ""
	for _, p := range health.Judge(health.Snapshot{Stores: got}) {
		text += fmt.Sprintf(" %s %s", p.Kind, p.Where)
	}
	if want := " store.damaged c3 store.behind c2"; text != want {
		t.Errorf("%+v is judged as%s, want%s", got, text, want)
	}
}
