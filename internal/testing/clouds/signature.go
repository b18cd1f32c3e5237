package clouds

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// verify returns why the signature of a request is not that of the keys, and "" if it is (AWS Identity and Access
// Management User Guide, "AWS Signature Version 4 for API requests"). The path of the request is "/".
func verify(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	parts := map[string]string{}
	algorithm, list, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for _, part := range strings.Split(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	id, scope, _ := strings.Cut(parts["Credential"], "/")
	scopes := strings.Split(scope, "/")
	if algorithm != "AWS4-HMAC-SHA256" || id != KeyID || len(scopes) != 4 {
		return "not signed by " + KeyID
	}
	var headers strings.Builder
	for _, name := range strings.Split(parts["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	canonical := strings.Join([]string{r.Method, "/", "", headers.String(), parts["SignedHeaders"], digest(body)}, "\n")
	toSign := strings.Join([]string{algorithm, r.Header.Get("X-Amz-Date"), scope, digest([]byte(canonical))}, "\n")
	key := []byte("AWS4" + SecretKey)
	for _, part := range append(scopes, toSign) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	if hex.EncodeToString(key) != parts["Signature"] {
		return "the signature is not valid"
	}
	if service := scopes[2]; !strings.Contains(r.Host, service+".") || !strings.Contains(r.Host, scopes[1]) {
		return "signed for another service or region: " + scope
	}
	return ""
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
