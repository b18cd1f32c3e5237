package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

// takeover writes the objects of the manager, and tokens, with the identity of the runtime.
func takeover([]string) {
	const home = "/namespaces/crossplane-system"
	token := `{"metadata":{"name":"stolen","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`
	for _, r := range [][3]string{
		{"PATCH", "/apis/coordination.k8s.io/v1" + home +
			"/leases/xpkg-manager", `{"spec":{"holderIdentity":"hostile","leaseDurationSeconds":2147483647}}`},
		{"DELETE", "/apis/coordination.k8s.io/v1" + home + "/leases/xpkg-manager", ""},
		{"PATCH", "/api/v1" + home + "/secrets/crossplane-root-ca", `{"data":{"tls.key":""}}`},
		{"DELETE", "/api/v1" + home + "/secrets/crossplane-root-ca", ""},
		{"PATCH", "/api/v1" + home + "/secrets/healthy-tls-server", `{"data":{"tls.key":""}}`},
		{"POST", "/api/v1/namespaces/kube-system/configmaps", `{"metadata":{"name":"stolen"}}`},
		{"POST", "/api/v1" + home + "/secrets", token},
		{"POST", "/api/v1/namespaces/default/secrets", token},
	} {
		fmt.Println(r[0], r[1], outcome(r[0], r[1], r[2]))
	}
	fmt.Println("takeover: end")
}

// outcome sends a request until RBAC allows it, and returns whether the fence has denied it.
func outcome(method, path, body string) string {
	for {
		status, answer, err := send(method, path, body)
		switch {
		case err != nil:
			fmt.Println(err)
		case status != http.StatusForbidden:
			return fmt.Sprint("GRANTED ", status)
		case strings.Contains(answer, "xpkg-runtime-fence"):
			return "is denied"
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func send(method, path, body string) (status int, answer string, err error) {
	ca, err := os.ReadFile(accountFolder + "ca.crt")
	if err != nil {
		return 0, "", err
	}
	token, err := os.ReadFile(accountFolder + "token")
	if err != nil {
		return 0, "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	url := "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")) + path
	request, err := http.NewRequest(method, url, bytes.NewBufferString(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// poll reads a path of the API server with the identity of the runtime, and reports each change of the status and of
// the UID of its ServiceAccount.
func poll(args []string) {
	last := ""
	for {
		status, _, err := send(http.MethodGet, args[0], "")
		if now := fmt.Sprintf("poll: %d %s", status, accountUID()); err == nil && now != last {
			fmt.Println(now)
			last = now
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// accountUID returns the UID of the ServiceAccount in the token, or "".
func accountUID() string {
	token, _ := os.ReadFile(accountFolder + "token")
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Kubernetes struct {
			ServiceAccount struct{ UID string } `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.ServiceAccount.UID
}
