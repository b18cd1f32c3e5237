package xpkg

import "strings"

// knownCapabilities lists the known capabilities. Unknown ones are kept unchanged.
const (
	CapabilityComposition = "composition"
	CapabilityOperation   = "operation"
	CapabilitySafeStart   = "safe-start"
)

// HasCapability reports whether the package has a capability. The comparison uses only
// letters and digits and ignores case: "SafeStart" equals "safe-start".
func (m Meta) HasCapability(name string) bool {
	for _, c := range m.Capabilities {
		if foldCapability(c) == foldCapability(name) {
			return true
		}
	}
	return false
}

func foldCapability(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}
