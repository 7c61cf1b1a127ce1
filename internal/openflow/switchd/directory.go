package switchd

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/controller"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// hostGone is the state of a host that is not there any more.
const hostGone = "gone"

// directoryRetry is how long it waits when the controller does not answer, and directoryAfresh how long at
// most it goes without asking for everything: not every change is an event.
const (
	directoryRetry  = time.Second
	directoryAfresh = 30 * time.Second
)

// A directory is what the controller says of hosts and links, kept here so that a module that asks waits for
// nobody. It is the mind of modules.
type directory struct {
	admin apiv1connect.AdminClient

	mu      sync.Mutex
	byName  map[string]controller.Host
	ways    []controller.Link
	service map[string]string // names by serviceID
}

func newDirectory(admin apiv1connect.AdminClient) *directory {
	return &directory{admin: admin, byName: make(map[string]controller.Host)}
}

// run follows the controller's events until ctx ends, and calls changed for each host that came, went or changed.
func (d *directory) run(ctx context.Context, changed func(controller.Host)) {
	for ctx.Err() == nil {
		d.follow(ctx, changed)
		select {
		case <-ctx.Done():
		case <-time.After(directoryRetry):
		}
	}
}

// follow reads everything at each event that tells of a host, a router, a link or a service; events that come
// meanwhile are one.
func (d *directory) follow(ctx context.Context, changed func(controller.Host)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.admin.WatchEvents(ctx, connect.NewRequest(&apiv1.WatchEventsRequest{Follow: true, History: 1}))
	if err != nil {
		return
	}
	news, ended := make(chan struct{}, 1), make(chan struct{})
	go func() { // ends with the stream, which ends with ctx
		defer close(ended)
		for first := true; stream.Receive(); first = false { // with the first we know that none is missed from here on
			if first || concerns(stream.Msg().Kind) {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}
	}()
	defer func() { cancel(); stream.Close(); <-ended }()
	for {
		hosts, err := d.read(ctx)
		if err != nil {
			return
		}
		for _, h := range hosts {
			changed(h)
		}
		select {
		case <-news:
		case <-time.After(directoryAfresh):
		case <-ended:
			return
		}
	}
}

func concerns(kind string) bool {
	of, _, _ := strings.Cut(kind, ".")
	return slices.Contains([]string{"host", "router", "link", "service", "controller"}, of)
}

// read asks for everything and returns the hosts that are not as they were.
func (d *directory) read(ctx context.Context) ([]controller.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	hosts, err := d.admin.ListHosts(ctx, connect.NewRequest(&apiv1.ListHostsRequest{}))
	if err != nil {
		return nil, err
	}
	routers, err := d.admin.ListRouters(ctx, connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return nil, err
	}
	services, err := d.admin.ListServices(ctx, connect.NewRequest(&apiv1.ListServicesRequest{}))
	if err != nil {
		return nil, err
	}
	return d.take(hosts.Msg, routers.Msg, services.Msg), nil
}

// take replaces what is known and returns the hosts that are not as they were.
func (d *directory) take(hosts *apiv1.ListHostsResponse, routers *apiv1.ListRoutersResponse, services *apiv1.ListServicesResponse) (news []controller.Host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.byName
	d.byName = make(map[string]controller.Host, len(hosts.Hosts))
	for _, m := range hosts.Hosts {
		h := hostFrom(m)
		d.byName[h.Name] = h
		if was, ok := old[h.Name]; !ok || !reflect.DeepEqual(was, h) {
			news = append(news, h)
		}
		delete(old, h.Name)
	}
	for _, h := range byKey(old) {
		h.State = hostGone
		news = append(news, h)
	}
	d.ways = nil
	for _, r := range routers.Routers {
		d.ways = append(d.ways, linksOf(r)...)
	}
	d.service = make(map[string]string, len(services.Services))
	for _, s := range services.Services {
		d.service[s.Sid] = s.Name
	}
	return news
}

func hostFrom(m *apiv1.Host) controller.Host {
	h := controller.Host{Name: m.Name, State: m.State}
	for _, p := range m.Places {
		l, _ := netip.ParsePrefix(p.Locator)
		h.Places = append(h.Places, controller.Place{Locator: l, Router: p.Router, Port: p.Port})
	}
	return h
}

func linksOf(r *apiv1.Router) (links []controller.Link) {
	for _, l := range r.Links {
		if l.Host {
			continue
		}
		via, _ := netip.ParseAddr(l.Via)
		links = append(links, controller.Link{
			Router: r.Name, Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: via.WithZone(""), Up: l.Up, Cost: l.Cost, Reason: l.Reason,
		})
	}
	return links
}

// hosts implements mind.
func (d *directory) hosts() []controller.Host {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := byKey(d.byName)
	for i := range list {
		list[i].Places = slices.Clone(list[i].Places)
	}
	return list
}

// links implements mind.
func (d *directory) links() []controller.Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ways)
}

// hostAt is the name of the host that has the locator, "" if none is known.
func (d *directory) hostAt(locator string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.byName {
		for _, p := range h.Places {
			if p.Locator.String() == locator {
				return h.Name
			}
		}
	}
	return ""
}

// serviceName is the name of the service, or its serviceID if it has none.
func (d *directory) serviceName(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name, ok := d.service[id]; ok {
		return name
	}
	return id
}

// path implements mind.
func (d *directory) path(ctx context.Context, from, to string) (controller.Path, error) {
	answer, err := d.admin.GetPath(ctx, connect.NewRequest(&apiv1.GetPathRequest{From: from, To: to}))
	if err != nil {
		return controller.Path{}, err
	}
	p := controller.Path{Cost: answer.Msg.Cost}
	for _, h := range answer.Msg.Hops {
		p.Hops = append(p.Hops, controller.Hop{Router: h.Router, In: h.In, Out: h.Out})
	}
	return p, nil
}
