// Pushes with Java's HttpClient, and prints what came of each notification: by token the status 200, the reason, or an error.
// java ApnsJava.java COUNT CA.pem AUTHORIZATION-FILE      (environment: patience, seconds for an answer)
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Semaphore;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class ApnsJava {
  public static void main(String[] arguments) throws Exception {
    var store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null);
    try (var file = new FileInputStream(arguments[1])) {
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    var tls = SSLContext.getInstance("TLS");
    tls.init(null, trust.getTrustManagers(), null);
    var authorization = Files.readString(Path.of(arguments[2])).strip();
    var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(tls).build();
    Map<String, String> said = new ConcurrentSkipListMap<>();
    var count = Integer.parseInt(arguments[0]);
    var gate = new Semaphore(20);
    var patience = Duration.ofSeconds(Integer.parseInt(System.getenv().getOrDefault("patience", "20")));
    for (int number = 0; number < count; number++) {
      var token = String.format("%064x", number);
      var request = HttpRequest.newBuilder(URI.create("https://api.push.apple.com/3/device/" + token))
        .timeout(patience).header("apns-topic", "com.example.app").header("apns-push-type", "alert")
        .header("authorization", authorization)
        .POST(HttpRequest.BodyPublishers.ofString("{\"aps\":{\"alert\":\"number " + number + "\"}}")).build();
      gate.acquire();
      client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).whenComplete((answer, error) -> {
        var word = error != null ? "error: " + (error.getCause() == null ? error : error.getCause()).getClass().getSimpleName()
          : answer.statusCode() == 200 ? "200" : answer.body().replaceAll(".*\"reason\":\"([^\"]*)\".*", "$1");
        said.put(token, word);
        gate.release();
      });
    }
    gate.acquire(20);
    var text = new StringBuilder("{");
    said.forEach((token, word) -> text.append(text.length() == 1 ? "" : ",").append('"' + token + "\":\"" + word + '"'));
    System.out.println(text.append('}'));
  }
}
