package resource

import "testing"

func TestFromEnviron(t *testing.T) {
	for _, row := range [][3]string{
		{"A=1\x00OTEL_SERVICE_NAME=shop\x00DB_PASSWORD=secret\x00", "shop", ""},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,team=a%2Cb\x00", "cart", "a,b"},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,team=x\x00OTEL_SERVICE_NAME=shop\x00", "shop", "x"},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=cart,team\x00", "", ""},
		{"OTEL_SERVICE_NAME=first\x00OTEL_SERVICE_NAME=second", "first", ""},
		{"XOTEL_SERVICE_NAME=no\x00OTEL_SERVICE_NAME_X=no\x00OTEL_SERVICE_NAME=\x00", "", ""},
		{"OTEL_RESOURCE_ATTRIBUTES= service.name = spaced , team = t \x00", "spaced", "t"},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=%zz\x00", "", ""},
	} {
		env, want := row[0], row[1:]
		a := FromEnviron([]byte(env))
		if a.Get(ServiceName) != want[0] || a.Get("team") != want[1] {
			t.Errorf("%q: %+v", env, a)
		}
		if a.Get("DB_PASSWORD") != "" || len(a) > 2 {
			t.Errorf("%q: %+v", env, a)
		}
	}
}
