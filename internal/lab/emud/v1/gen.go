// Package emudv1 is version 1 of what an engine can be asked, generated from emulator.proto.
package emudv1

//go:generate sh -c "protoc --go_out=. --go_opt=paths=source_relative --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --connect-go_out=. --connect-go_opt=paths=source_relative,simple --plugin=protoc-gen-connect-go=$(go tool -n protoc-gen-connect-go) emulator.proto"
