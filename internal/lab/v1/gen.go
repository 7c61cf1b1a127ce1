// Package labv1 is version 1 of what labs offer to programs and to the web view, generated from lab.proto.
package labv1

//go:generate sh -c "protoc --go_out=. --go_opt=paths=source_relative --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --connect-go_out=. --connect-go_opt=paths=source_relative,simple --plugin=protoc-gen-connect-go=$(go tool -n protoc-gen-connect-go) lab.proto"
//go:generate go run ./schema ../../../clients/python/scaffold_lab/_schema.py ../dash/page/schema.js
