package xpkg

import (
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A Policy sets the severity of each finding. The zero value is PolicyInstall.
type Policy struct {
	building bool
	strict   bool
	lenient  bool
	changed  map[string]Severity
}

// PolicyInstall is the policy for published packages. It accepts every package that can be installed
// safely.
func PolicyInstall() Policy { return Policy{} }

// PolicyBuild is the policy for package authors: problems that would surface at install fail the
// build.
func PolicyBuild() Policy { return Policy{building: true} }

// Strict turns every warning into an error.
func (p Policy) Strict() Policy {
	p.strict = true
	return p
}

// Lenient turns the errors that other package managers ignore into warnings: objects that this kind of
// package must not contain are omitted, and the last of duplicate keys applies. Objects that are not
// allowed in any package are still errors.
func (p Policy) Lenient() Policy {
	p.lenient = true
	return p
}

// LenientCodes returns the codes of the findings that a lenient policy accepts.
func LenientCodes() []errcode.Code { return []errcode.Code{ErrDuplicateKey, ErrObjectNotAllowed} }

// Accepted returns the findings that only the lenient policy accepted, in the order of the stream.
func (p *Package) Accepted() []Finding {
	var out []Finding
	for _, f := range p.Findings {
		if f.Severity == Warning && isLenientCode(f.Code) {
			out = append(out, f)
		}
	}
	return out
}

func isLenientCode(code errcode.Code) bool {
	return slices.ContainsFunc(LenientCodes(), func(c errcode.Code) bool { return c.Name == code.Name })
}

// With sets the severity of a code; Off drops the finding.
func (p Policy) With(code errcode.Code, s Severity) Policy {
	p.changed = maps.Clone(p.changed)
	if p.changed == nil {
		p.changed = map[string]Severity{}
	}
	p.changed[code.Name] = s
	return p
}

// Severities maps the names of codes to the severity of their findings. A code that is not
// in the map is an error under every policy.
type Severities map[string]struct{ Build, Install Severity }

// Severity returns the severity of a finding of this package with the code.
func (p Policy) Severity(code errcode.Code) Severity { return p.severity(code, severities) }

func (p Policy) severity(code errcode.Code, defaults Severities) Severity {
	s := p.base(code, defaults)
	if p.strict && s == Warning {
		return Error
	}
	return s
}

func (p Policy) base(code errcode.Code, defaults Severities) Severity {
	if s, ok := p.changed[code.Name]; ok {
		return s
	}
	if p.lenient && isLenientCode(code) {
		return Warning
	}
	if s, ok := defaults[code.Name]; ok {
		if p.building {
			return s.Build
		}
		return s.Install
	}
	return Error
}

// Apply sets the severity of each finding, and drops the findings that are off. The
// defaults apply to codes whose severity the policy does not change. It reuses the slice.
func (p Policy) Apply(findings []Finding, defaults Severities) []Finding {
	kept := findings[:0]
	for _, f := range findings {
		if f.Severity = p.severity(f.Code, defaults); f.Severity != Off {
			kept = append(kept, f)
		}
	}
	return kept
}

// severities holds the codes of this package that are not errors under every policy.
var severities = Severities{
	ErrKindAlias.Name:         {Build: Warning, Install: Warning},
	ErrUnknownMetaField.Name:  {Build: Warning, Install: Warning},
	ErrInvalidExample.Name:    {Build: Warning, Install: Warning},
	ErrMissingRepository.Name: {Build: Warning, Install: Warning},
	ErrNotPackaged.Name:       {Build: Warning, Install: Warning},

	// Authors can fix the text; published packages cannot be changed.
	ErrTextOnSeparator.Name: {Build: Error, Install: Off},

	// These do not prevent an install, and upstream does not check them.
	ErrInvalidMetaName.Name:          {Build: Error, Install: Warning},
	ErrInvalidPermissionRequest.Name: {Build: Error, Install: Warning},
}
