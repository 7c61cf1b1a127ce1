package controld

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/monitoring/promrun"
)

// A real Prometheus scrapes a controller as it runs: nothing fires while all is well, the alert fires by what the
// controller finds, and ends with it. That each other rule fires, package monitoring shows by made-up series.
func TestAnAlertFiresByAControllersOwnMetricsAndEnds(t *testing.T) {
	t.Parallel()
	at := freeport.Address(t)
	c := start(t, config.Config{Listen: []string{"http://" + at}})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	r.states("up", h.locator())
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	c.says()

	p := promrun.Start(t, map[string][]string{"scaffold-controld": {at + "/metrics"}})
	names := func(firing map[string]string) string {
		return strings.Join(slices.Sorted(maps.Keys(firing)), " ")
	}
	p.Scraped("scaffold-controld")
	p.Await("nothing fires", func(firing map[string]string) bool { return names(firing) == "" })
	c.weigh("s1", 0)
	p.Await("the service is missed, and nothing else", func(firing map[string]string) bool {
		return names(firing) == "ScaffoldServiceUnserved" && strings.Contains(firing["ScaffoldServiceUnserved"], "scaffold status")
	})
	c.weigh("s1", 100)
	p.Await("it ends", func(firing map[string]string) bool { return names(firing) == "" })
}
