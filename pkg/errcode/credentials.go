package errcode

import "strings"

// hidden replaces credentials in a text.
const hidden = "***"

// HideCredentials replaces the credentials in front of host names, such as USER:PASSWORD@HOST, by "***". References and
// addresses must not contain credentials, and a message about one that does must not publish them.
func HideCredentials(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '@')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		if start := credentials(text[:i], text[i+1:]); start >= 0 {
			b.WriteString(text[:start])
			b.WriteString(hidden)
			// A password can contain the character "@".
			host := text[i+1:]
			if end := strings.IndexAny(host, "/"+delimiters); end >= 0 {
				host = host[:end]
			}
			i += strings.LastIndexByte(host, '@') + 1
		} else {
			b.WriteString(text[:i])
		}
		b.WriteByte('@')
		text = text[i+1:]
	}
}

// delimiters end a reference or an address in a message.
const delimiters = " \t\r\n\"'`<>()"

// credentials returns the offset of the credentials at the end of before, or -1 if there are none. After is the text
// behind the character "@", which also separates a digest, a constraint, and the host of an e-mail address.
func credentials(before, after string) int {
	start := strings.LastIndexAny(before, delimiters) + 1
	if i := strings.LastIndex(before[start:], "://"); i >= 0 {
		start += i + len("://")
	}
	if flag := strings.IndexByte(before[start:], '='); flag >= 0 && !strings.Contains(before[start:start+flag], ":") {
		start += flag + 1
	}
	user, password, found := strings.Cut(before[start:], ":")
	if end := strings.IndexAny(after, delimiters); end >= 0 {
		after = after[:end]
	}
	switch {
	case !found, password == "", strings.Contains(user, "/"), user == "mailto":
		return -1 // REPOSITORY:TAG@DIGEST has a slash in front of the colon.
	case strings.HasPrefix(after, "sha256:"), strings.HasPrefix(after, "sha512:"):
		return -1
	case after == "" || !isAlphanumeric(after[0]) && after[0] != '[':
		return -1
	case strings.Contains(password, "/") && !strings.Contains(after, "/"):
		return -1 // HOST:PORT/REPOSITORY@CONSTRAINT.
	}
	return start
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
