package servers;

import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Indexes so many texts in memory, and searches them. READY: it rests. */
public final class Lucene {
    private Lucene() {}

    public static void main(String[] args) throws Exception {
        Random random = new Random(1);
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory();
                IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
            for (int i = 0; i < Integer.parseInt(args[0]); i++) {
                StringBuilder text = new StringBuilder();
                for (int k = 0; k < 60; k++) {
                    text.append("word").append((int) Math.abs(random.nextGaussian() * 20_000)).append(' ');
                }
                Document document = new Document();
                document.add(new TextField("text", text.toString(), Field.Store.YES));
                document.add(new LongPoint("number", random.nextLong()));
                writer.addDocument(document);
            }
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                for (int i = 0; i < 1000; i++) {
                    searcher.search(new TermQuery(new Term("text", "word" + i)), 10);
                }
                Work.rest();
            }
        }
    }
}
