// Package manifest reads and writes files of services, and of sites and entries of boost, as `scaffold apply` takes
// them: docs/services.md, docs/boost.md. It knows where everything stands, so that what the controller has to say of a field is said of its line.
package manifest
