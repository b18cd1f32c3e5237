package main

import (
	"bytes"
	"encoding/pem"
	"errors"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities returns the certificates of public authorities that Mozilla trusts, as one
// file. They come from a module instead of the machine, so that the result is
// reproducible. Authorities with constraints are omitted, because the file cannot express
// them.
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
