package spelling

import "strings"

// Field returns the known field whose spelling is closest to a name, and "" if none is close. It ignores case.
func Field(name string, known []string) string {
	const longest = 40
	if len(name) > longest {
		return ""
	}
	best, bestDistance := "", 3
	for _, f := range known {
		if d := Distance(strings.ToLower(name), strings.ToLower(f)); d < bestDistance {
			best, bestDistance = f, d
		}
	}
	if len(name) < 4 && bestDistance > 1 {
		return ""
	}
	return best
}
