package controld

import (
	"scaffold.dev/scaffold/internal/controller/controld/redirects"
	"scaffold.dev/scaffold/sid"
)

// ways tell redirects how far routers are.
type ways struct{ n *network }

// Way is that to a locator: by the router where somebody is attached with it.
func (w ways) Way(to sid.Locator) redirects.Way {
	at, here := w.n.places.At(to)
	if !here {
		return redirects.Way{}
	}
	first := w.n.pushes.Of(at.Router)
	if !first.Synced {
		return redirects.Way{Known: true}
	}
	return redirects.Way{Known: true, Waited: true, Told: first.Told, Applied: first.Applied}
}
