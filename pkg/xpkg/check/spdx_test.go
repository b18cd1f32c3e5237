package check

import "testing"

func TestLicenses(t *testing.T) {
	for text, want := range map[string]string{
		"Apache-2.0": "", "apache-2.0": "", "MIT-0": "", "GPL-2.0+": "", "GPL-2.0-or-later": "",
		"MIT OR Apache-2.0": "", "(MIT AND (Apache-2.0 or BSD-3-Clause))": "",
		"GPL-2.0-only WITH Classpath-exception-2.0": "",
		"LicenseRef-Example":                        "", "DocumentRef-x:LicenseRef-y": "",
		"Apache":         `"Apache" is not an SPDX identifier`,
		"Apache License": `"Apache" is not an SPDX identifier`,
		"MIT Apache-2.0": `unexpected "Apache-2.0"`,
		"MIT OR":         "an identifier is missing",
		" ":              "an identifier is missing",
		"(MIT":           `")" is missing`,
		"MIT)":           `unexpected ")"`,
		"MIT WITH":       "an exception is missing after WITH",
		"LicenseRef-a_b": `"LicenseRef-a_b" is not an SPDX identifier`,
		"((((((((((((((((((((((MIT))))))))))))))))))))))": "too many parentheses",
	} {
		if got := licenseFault(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
