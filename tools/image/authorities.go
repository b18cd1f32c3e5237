package main

import (
	"bytes"
	"encoding/pem"
	"errors"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities are the certificates of public authorities that Mozilla trusts, as one
// file. They come from a module and not from the machine, so that it is known which
// ones they are. Those that are trusted within limits only are left out: the file
// could not say so.
func authorities() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("there are no certificates of authorities")
	}
	return out.Bytes(), nil
}
