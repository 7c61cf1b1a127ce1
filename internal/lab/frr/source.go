package frr

// A Source tells the routes of one router: a feed of zebra, or a watch of a kernel table.
type Source interface {
	// Close stops the source; when it returns no more is told.
	Close() error
}

// Tell receives changes in the order in which they happened, those that belong together in one call. It is
// called by one goroutine at a time. The slice is the caller's again when Tell returns; what the changes hold
// is not. There are none in a call that says that all was said again, after who computes the routes came back.
type Tell func(changes []Change)
