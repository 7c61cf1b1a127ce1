package controld

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// A gauge of an agent that is away would say of now what was of before: only that it is away is scraped.
func TestAnAgentThatIsAwayHasNoGaugesButThatItIs(t *testing.T) {
	n := &network{}
	n.census.taken = time.Now().Add(time.Hour) // no loop is asked
	n.census.last = &figures{boost: boost.Figures{Agents: []*apiv1.BoostAgent{{Name: "e1", State: "here", Load: 0.5}, {Name: "w1", State: "away"}}}}
	m := obs.NewMetrics("controld")
	n.exportBoost(m)
	scrape := httptest.NewRecorder()
	m.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.Contains(line, "w1") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if want := []string{`scaffold_controld_boost_agent_here{agent="w1"} 0`}; !slices.Equal(lines, want) {
		t.Errorf("of an agent that is away is scraped %q, want %q", lines, want)
	}
}
