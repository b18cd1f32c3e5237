package xpkg

import (
	"maps"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A Policy sets the severity of each finding. The zero value is PolicyInstall.
type Policy struct {
	building bool
	strict   bool
	lenient  bool
	changed  map[string]Severity
}

// PolicyInstall is for published packages: it accepts every package that the field's
// package managers install without harm.
func PolicyInstall() Policy { return Policy{} }

// PolicyBuild is for authors: problems that would surface at install fail the build.
func PolicyBuild() Policy { return Policy{building: true} }

// Strict turns every warning into an error.
func (p Policy) Strict() Policy {
	p.strict = true
	return p
}

// Lenient leaves objects out that the kind of package may not hold, with a
// warning, as the field's package managers do. Objects that no package may hold
// are refused all the same.
func (p Policy) Lenient() Policy {
	p.lenient = true
	return p
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

// Severity of a finding of this code under the policy.
func (p Policy) Severity(code errcode.Code) Severity {
	s := p.base(code)
	if p.strict && s == Warning {
		return Error
	}
	return s
}

func (p Policy) base(code errcode.Code) Severity {
	if s, ok := p.changed[code.Name]; ok {
		return s
	}
	if p.lenient && code.Name == ErrObjectNotAllowed.Name {
		return Warning
	}
	if s, ok := severities[code.Name]; ok {
		if p.building {
			return s.build
		}
		return s.install
	}
	return Error
}

// severities holds the codes that are not errors under every policy.
var severities = map[string]struct{ build, install Severity }{
	ErrKindAlias.Name:         {Warning, Warning},
	ErrUnknownMetaField.Name:  {Warning, Warning},
	ErrMissingAnnotation.Name: {Warning, Off},
	ErrInvalidLicense.Name:    {Warning, Off},
	ErrInvalidSource.Name:     {Warning, Off},
	ErrUnknownCapability.Name: {Warning, Warning},
	ErrCABundleIgnored.Name:   {Warning, Warning},
	ErrDeprecatedCRD.Name:     {Warning, Warning},

	// Authors can fix the text; published packages are read as they are.
	ErrTextOnSeparator.Name: {Error, Off},

	// These do not prevent an install, and upstream does not check them.
	ErrInvalidMetaName.Name:          {Error, Warning},
	ErrMetaAnnotationsTooLarge.Name:  {Error, Warning},
	ErrInvalidInputSchema.Name:       {Error, Warning},
	ErrInvalidPermissionRequest.Name: {Error, Warning},
}

// apply sets the severities and drops the findings that are off.
func (p Policy) apply(findings []Finding) []Finding {
	kept := findings[:0]
	for _, f := range findings {
		if f.Severity = p.Severity(f.Code); f.Severity != Off {
			kept = append(kept, f)
		}
	}
	return kept
}
