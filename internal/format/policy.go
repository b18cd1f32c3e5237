package format

import (
	"maps"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// A Policy says how severe each finding is. The zero value is PolicyInstall.
type Policy struct {
	building bool
	strict   bool
	lenient  bool
	changed  map[string]Severity
}

// PolicyInstall is for packages that others built: whatever the field's package
// managers install without harm is installed.
func PolicyInstall() Policy { return Policy{} }

// PolicyBuild is for authors: whatever would fail or surprise at install fails
// at build.
func PolicyBuild() Policy { return Policy{building: true} }

// Strict makes an error of every warning.
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

// With gives a code a severity of its own; Off drops the finding.
func (p Policy) With(code failure.Code, s Severity) Policy {
	p.changed = maps.Clone(p.changed)
	if p.changed == nil {
		p.changed = map[string]Severity{}
	}
	p.changed[code.Name] = s
	return p
}

// Severity of a finding of this code under the policy.
func (p Policy) Severity(code failure.Code) Severity {
	s := p.base(code)
	if p.strict && s == Warning {
		return Error
	}
	return s
}

func (p Policy) base(code failure.Code) Severity {
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

// severities holds the codes that are not an error for everybody.
var severities = map[string]struct{ build, install Severity }{
	ErrKindAlias.Name:         {Warning, Warning},
	ErrUnknownMetaField.Name:  {Warning, Warning},
	ErrMissingAnnotation.Name: {Warning, Off},
	ErrInvalidLicense.Name:    {Warning, Off},
	ErrInvalidSource.Name:     {Warning, Off},
	ErrUnknownCapability.Name: {Warning, Warning},
	ErrCABundleIgnored.Name:   {Warning, Warning},
	ErrDeprecatedCRD.Name:     {Warning, Warning},

	// Authors can write for all readers; what is published is read as it is.
	ErrTextOnSeparator.Name: {Error, Off},

	// These do not hinder an install, and upstream does not look at them.
	ErrInvalidMetaName.Name:          {Error, Warning},
	ErrMetaAnnotationsTooLarge.Name:  {Error, Warning},
	ErrInvalidInputSchema.Name:       {Error, Warning},
	ErrInvalidPermissionRequest.Name: {Error, Warning},
}

// apply sets the severities and drops what the policy does not want to know.
func (p Policy) apply(findings []Finding) []Finding {
	kept := findings[:0]
	for _, f := range findings {
		if f.Severity = p.Severity(f.Code); f.Severity != Off {
			kept = append(kept, f)
		}
	}
	return kept
}
