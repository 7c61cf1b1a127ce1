package permit

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// The kinds of PEM blocks; the first two are as openssl writes them.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
	permitBlock  = "SCAFFOLD PERMIT"
)

// ErrNoKey is of a text without a key.
var ErrNoKey = errors.New("no Ed25519 key: want a PEM file as `scaffold service keygen` makes it")

// FormatPrivate is a service's key as a file.
func FormatPrivate(key ed25519.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(fmt.Sprintf("permit: an Ed25519 key cannot be written: %v", err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})
}

// FormatPublic is its public half as a file.
func FormatPublic(key ed25519.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(fmt.Sprintf("permit: an Ed25519 key cannot be written: %v", err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})
}

// ParsePrivate reads a service's key.
func ParsePrivate(text []byte) (ed25519.PrivateKey, error) {
	block := find(text, privateBlock)
	if block == nil {
		return nil, ErrNoKey
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if private, ok := key.(ed25519.PrivateKey); ok && err == nil {
		return private, nil
	}
	return nil, ErrNoKey
}

// ParsePublic reads the public half, also out of a file with the key itself.
func ParsePublic(text []byte) (ed25519.PublicKey, error) {
	if private, err := ParsePrivate(text); err == nil {
		return private.Public().(ed25519.PublicKey), nil
	}
	block := find(text, publicBlock)
	if block == nil {
		return nil, ErrNoKey
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if public, ok := key.(ed25519.PublicKey); ok && err == nil {
		return public, nil
	}
	return nil, ErrNoKey
}

// find is the first block of a kind.
func find(text []byte, kind string) *pem.Block {
	for {
		block, rest := pem.Decode(text)
		if block == nil || block.Type == kind {
			return block
		}
		text = rest
	}
}
