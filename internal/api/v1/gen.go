// Package apiv1 is version 1 of the daemons' API, generated from scaffold.proto.
package apiv1

//go:generate sh -c "protoc --go_out=. --go_opt=paths=source_relative --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --connect-go_out=. --connect-go_opt=paths=source_relative --plugin=protoc-gen-connect-go=$(go tool -n protoc-gen-connect-go) files.proto scaffold.proto boost.proto"
