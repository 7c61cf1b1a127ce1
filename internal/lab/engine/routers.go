package engine

import (
	"context"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// Learned is how many routes the engine has of each router's daemons; none of routers without daemons.
func (e *Engine) Learned(ctx context.Context) (map[string]int, error) {
	if err := e.procs.Exited(file.ManagementNode, Name); err != nil {
		return nil, poll.Final(err)
	}
	routers, err := e.Client().Routers(ctx)
	if err != nil {
		return nil, err
	}
	routes := map[string]int{}
	for _, r := range routers {
		if r.Feed != nil {
			routes[r.Name] = r.Feed.Routes
		}
	}
	return routes, nil
}

// States are those of the routers inside the engine; none if that does not answer.
func (e *Engine) States() map[string]emud.RouterState {
	all := map[string]emud.RouterState{}
	client := e.Client()
	if client == nil {
		return all
	}
	list, _ := client.Routers(context.Background()) // without the engine they are down, which is what is shown
	for _, r := range list {
		all[r.Name] = r
	}
	return all
}
