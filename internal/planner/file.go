package planner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Failures of stored plans.
var (
	ErrPlanInvalid = errcode.Code{
		Name: "PlanInvalid", Class: errcode.Invalid,
		Cause: "The file is not a plan, or was made by an incompatible version of xpkg.",
		Fix:   "Make a new plan with `xpkg plan` and --out.",
	}
	ErrPlanDamaged = errcode.Code{
		Name: "PlanDamaged", Class: errcode.Untrusted,
		Cause: "The content of a plan does not match its digest: it was changed after it was made.",
		Fix:   "Use an undamaged copy of the file, or make a new plan.",
	}
)

// MaxSize is the maximum size in bytes of the input of Decode. The plan of a package with 2,000
// objects takes 2 MB.
const MaxSize = 64 << 20

// digestField is the field with the digest of the rest of the file.
const digestField = "digest"

// Digest returns the digest "sha256:…" of the canonical JSON of the plan, which has ordered keys
// and no spaces. Equal plans have the same digest on every machine.
func (p *Plan) Digest() string { return DigestOf(p) }

// DigestOf returns the digest of the canonical JSON of a value that has one, such as a plan.
func DigestOf(v any) string {
	raw, err := marshal(v)
	if err == nil {
		raw, err = canonical(raw)
	}
	if err != nil {
		// All fields of a Plan can be marshaled, and Object and Spec are JSON already.
		panic(err)
	}
	return digestOf(raw)
}

// Agreement returns the digest of what a user agrees to with plans: the packages with their versions, and the
// consequences for others. Plans of the same change by different clients have equal digests, also while the manager
// still installs the version before: the transaction has the expected generations of the packages.
func Agreement(plans []*Plan) string {
	type added struct{ Package, Digest string }
	type agreed struct {
		Operation        Operation
		Package, To      string
		Breaks, Webhooks []string
		Permissions      any
		Lost             []CustomResources
		Keeps            bool `json:",omitempty"`
		Added            []added
	}
	var all []agreed
	for _, p := range plans {
		a := agreed{Operation: p.Operation, Package: p.Package.Short(), To: p.Package.To.String(), Keeps: p.OnDelete.Orphan}
		for _, b := range p.Breaks {
			a.Breaks = append(a.Breaks, b.String())
		}
		if p.Permissions != nil {
			a.Permissions = p.Permissions.Added
		}
		if p.Webhooks != nil {
			a.Webhooks = p.Webhooks.Outside
		}
		for _, r := range p.CustomResources {
			if r.Count > 0 || r.Unknown != "" {
				a.Lost = append(a.Lost, CustomResources{CRD: r.CRD, Count: r.Count, Digest: r.Digest})
			}
		}
		for _, b := range p.AddedPackages {
			a.Added = append(a.Added, added{b.Short(), b.Digest})
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b agreed) int { return strings.Compare(a.Package, b.Package) })
	return DigestOf(all)
}

// FileName returns the name of a plan file, which is derived from its content.
func (p *Plan) FileName() string {
	return fileName(p.Digest())
}

func fileName(digest string) string {
	const shown = 12
	return "plan-" + digest[len("sha256:"):][:shown] + ".json"
}

// Encode returns the content of a plan file: JSON with the digest of all other fields.
func Encode(p *Plan) ([]byte, error) {
	raw, err := marshal(struct {
		*Plan
		Digest string `json:"digest"`
	}{p, p.Digest()})
	if err != nil {
		return nil, err
	}
	return indented(raw)
}

// ListKind is the kind of a file with the plans of several packages.
const ListKind = "PlanList"

// planList is the content of a file with the plans of several packages, in the order in which they are carried out.
type planList struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Items      []*Plan `json:"items"`
}

func newPlanList(plans []*Plan) planList {
	return planList{APIVersion, ListKind, append([]*Plan{}, plans...)}
}

// EncodeList returns the content of a file with the plans of several packages, in the order in which they are carried
// out: JSON with the digest of all other fields.
func EncodeList(plans []*Plan) ([]byte, error) {
	list := newPlanList(plans)
	raw, err := marshal(struct {
		planList
		Digest string `json:"digest"`
	}{list, DigestOf(list)})
	if err != nil {
		return nil, err
	}
	return indented(raw)
}

// ListFileName returns the name of a file with the plans of several packages, which is derived from its content.
func ListFileName(plans []*Plan) string { return fileName(DigestOf(newPlanList(plans))) }

func indented(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// marshal encodes JSON without escaping HTML, because constraints contain ">".
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Decode parses the content of a file with the plan of one package or the plans of several ones, which isList reports.
// It fails with PlanDamaged if the content does not match the digest, and with PlanInvalid if it is no plan or larger
// than MaxSize.
func Decode(raw []byte) (plans []*Plan, isList bool, err error) {
	content, kind, err := verified(raw)
	if err != nil {
		return nil, false, err
	}
	if kind == Kind {
		p, err := parse(content)
		return []*Plan{p}, false, err
	}
	var list planList
	unknown, err := kjson.UnmarshalStrict(content, &list)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, true, ErrPlanInvalid.New(err, "cannot read the plans")
	}
	named := map[string]bool{}
	for _, p := range list.Items {
		if p == nil {
			return nil, true, ErrPlanInvalid.New(errors.New("one of them is null"), "cannot read the plans")
		}
		if err := p.check(); err != nil {
			return nil, true, err
		}
		if named[p.Package.Short()] {
			return nil, true, ErrPlanInvalid.New(fmt.Errorf("%s has two", p.Package.Short()), "cannot read the plans")
		}
		named[p.Package.Short()] = true
	}
	return list.Items, true, nil
}

// verified returns the canonical content of a file without its digest, and its kind, Kind or ListKind.
func verified(raw []byte) (content []byte, kind string, err error) {
	if len(raw) > MaxSize {
		return nil, "",
			ErrPlanInvalid.New(fmt.Errorf("it has %d bytes, at most %d are allowed", len(raw), MaxSize), "cannot read the plan")
	}
	content, kind, claimed, err := splitDigest(bytes.TrimPrefix(raw, byteOrderMark))
	if err != nil {
		return nil, "", ErrPlanInvalid.New(err, "cannot read the plan")
	}
	if is := digestOf(content); is != claimed {
		return nil, "", ErrPlanDamaged.New(fmt.Errorf("its digest is %s and not %s", is, claimed), "cannot use the plan")
	}
	return content, kind, nil
}

// parse returns the plan of the content that splitDigest returned.
func parse(content []byte) (*Plan, error) {
	p := &Plan{}
	unknown, err := kjson.UnmarshalStrict(content, p)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, ErrPlanInvalid.New(err, "cannot read the plan")
	}
	return p, p.check()
}

// byteOrderMark is at the start of a file that some editors and shells write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// splitDigest returns the canonical content of a file without its digest, its kind, and the digest.
func splitDigest(raw []byte) (content []byte, kind, digest string, err error) {
	var fields map[string]any
	strict, err := kjson.UnmarshalStrict(raw, &fields)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, "", "", err
	}
	digest, ok := fields[digestField].(string)
	if !ok {
		return nil, "", "", errors.New("it has no digest")
	}
	kind, _ = fields["kind"].(string)
	if fields["apiVersion"] != APIVersion || kind != Kind && kind != ListKind {
		return nil, "", "", fmt.Errorf("it is not a %s or %s of %s", Kind, ListKind, APIVersion)
	}
	delete(fields, digestField)
	content, err = marshal(fields)
	return content, kind, digest, err
}

// check returns an error for a field that a plan written by hand may lack.
func (p *Plan) check() error {
	fail := func(reason string) error { return ErrPlanInvalid.New(errors.New(reason), "cannot use the plan") }
	switch p.Operation {
	case Install, Update:
		if _, err := p.Wanted(); err != nil {
			return ErrPlanInvalid.New(err, "cannot use the plan")
		}
		if p.Content == nil {
			return fail("it names no content")
		}
	case Uninstall:
		if p.Preconditions.UID == "" {
			return fail("the package to uninstall is missing")
		}
	default:
		return fail(fmt.Sprintf("the operation %q is unknown", p.Operation))
	}
	if v1.NewPackage(p.Package.Kind) == nil || p.Package.Name == "" {
		return fail("it names no package")
	}
	return nil
}

func digestOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical returns canonical JSON, which has ordered keys and no spaces.
func canonical(raw []byte) ([]byte, error) {
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &v); err != nil {
		return nil, err
	}
	return marshal(v)
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
