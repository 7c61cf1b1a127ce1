// Package guest is `scaffold guest`: network namespaces of a host that it is the edge of, and the hook by which a container
// runtime makes its containers such.
package guest
