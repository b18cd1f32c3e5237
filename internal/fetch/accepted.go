package fetch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// acceptedKey returns the key of the findings that the lenient policy accepted in a
// package.
func acceptedKey(d oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: d, Name: "lenient-findings", Version: derivedVersion}
}

// accepted is the stored form of a finding.
type accepted struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Fix      string `json:"fix"`
	Kind     string `json:"kind,omitempty"`
	Name     string `json:"name,omitempty"`
	Line     int    `json:"line,omitempty"`
	Document int    `json:"document,omitempty"`
}

// keepAccepted stores the findings that the lenient policy accepted in a package.
func (s *Source) keepAccepted(ctx context.Context, d oci.Digest, pkg *xpkg.Package) error {
	out := []accepted{}
	for _, f := range pkg.Accepted() {
		out = append(out, accepted{f.Code.Name, f.Text(), f.Fix, f.Kind, f.Name, f.Line, f.Document})
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return s.opts.Store.PutDerived(ctx, acceptedKey(d), raw)
}

// accepted returns the stored findings of a package.
func (s *Source) accepted(ctx context.Context, o Origin, d oci.Digest) ([]xpkg.Finding, error) {
	raw, err := s.opts.Store.GetDerived(ctx, acceptedKey(d))
	if err != nil {
		return nil, err
	}
	var stored []accepted
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, err
	}
	var out []xpkg.Finding
	for _, f := range stored {
		i := slices.IndexFunc(xpkg.LenientCodes(), func(c errcode.Code) bool { return c.Name == f.Code })
		if i < 0 {
			continue
		}
		out = append(out, xpkg.Finding{
			Code: xpkg.LenientCodes()[i], Severity: xpkg.Warning, Message: f.Message, Fix: f.Fix,
			File: o.at(d), Kind: f.Kind, Name: f.Name, Line: f.Line, Document: f.Document,
		})
	}
	return out, nil
}
