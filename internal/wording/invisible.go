package wording

import "unicode"

// Invisible reports whether a character is not shown as it is written: control and format
// characters, which may reorder text or have no width, line and paragraph
// separators, variation selectors, fillers, and bytes that are not UTF-8. Text with such a
// character can look like other text. Spaces and line breaks are visible; tabs are not.
func Invisible(r rune) bool {
	return r != '\n' && (r == unicode.ReplacementChar ||
		unicode.In(
			r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point,
		))
}
